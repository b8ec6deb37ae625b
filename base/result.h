// Result<T> holds a value or an Error; Status is Result<void>. Whoever first decides that something is an error words it, with the
// cause as seen (errno, size, peer); callers pass it on with GYRE_TRY and it is logged once, at the rim. "Would block", "no slot"
// and "not yet connected" are not errors: functions return null, false or an empty optional for them.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace gyre {

/// Why something failed; the values are ncclResult_t's, so that the C rim need not translate.
enum class Code { cuda = 1, system = 2, internal = 3, invalid_argument = 4, invalid_usage = 5, remote = 6, timeout = 8 };

struct [[nodiscard]] Error {
  Code code;
  std::string what;
  const char* file;
  int line;

  Error(Code c, std::string text, const char* f = __builtin_FILE(), int l = __builtin_LINE())
      : code(c), what(std::move(text)), file(f), line(l) {}
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor): that is the point
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return !error_.has_value(); }
  void operator*() const {}
  const Error& error() const& { return error_.value(); }
  Error&& error() && { return std::move(error_).value(); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace gyre

/// The value of a Result; on an error, returns it to our caller.
#define GYRE_TRY(...)                            \
  (__extension__({                               \
    auto gyre_try_result = (__VA_ARGS__);        \
    if (!gyre_try_result) [[unlikely]]           \
      return std::move(gyre_try_result).error(); \
    *std::move(gyre_try_result);                 \
  }))
