#include "base/result.h"

#include <memory>
#include <string>

#include "test/catch.h"

using namespace gyre;

namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return Error{Code::invalid_argument, std::to_string(x) + " is odd"};
  return x / 2;
}
Result<int> quarter(int x) {
  const int halved = GYRE_TRY(half(x));
  return GYRE_TRY(half(halved));
}
Status divisible_by_four(int x) {
  GYRE_TRY(quarter(x));
  return {};
}
Result<std::string> relayed(int x) {
  GYRE_TRY(divisible_by_four(x));
  return std::string("yes");
}

struct Counted {
  explicit Counted(int* copies) : copies_(copies) {}
  Counted(const Counted& other) : copies_(other.copies_) { ++*copies_; }
  Counted(Counted&&) = default;
  Counted& operator=(const Counted&) = delete;
  Counted& operator=(Counted&&) = delete;
  ~Counted() = default;

 private:
  int* copies_;
};

}  // namespace

TEST_CASE("a value passes through GYRE_TRY") {
  CHECK(*quarter(12) == 3);
  CHECK(divisible_by_four(12));
  CHECK(*relayed(12) == "yes");
}

TEST_CASE("an error passes through GYRE_TRY as it was worded, whatever the type of the result") {
  const auto result = relayed(6);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Code::invalid_argument);
  CHECK(result.error().what == "3 is odd");
}

TEST_CASE("an error knows where it was made") {
  const int line = __LINE__ + 1;
  const Error error{Code::system, "no"};
  CHECK(error.line == line);
  CHECK(std::string(error.file).ends_with("result_test.cpp"));
}

TEST_CASE("values that can only be moved pass through GYRE_TRY") {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(5); };
  const auto relay = [&]() -> Result<std::unique_ptr<int>> {
    auto value = GYRE_TRY(make());
    ++*value;
    return value;
  };
  CHECK(**relay() == 6);
}

TEST_CASE("GYRE_TRY copies nothing") {
  int copies = 0;
  const auto make = [&]() -> Result<Counted> { return Counted(&copies); };
  const auto relay = [&]() -> Result<Counted> { return GYRE_TRY(make()); };
  CHECK(relay());
  CHECK(copies == 0);
}

TEST_CASE("the codes are ncclResult_t's numbers") {
  CHECK(static_cast<int>(Code::cuda) == 1);
  CHECK(static_cast<int>(Code::system) == 2);
  CHECK(static_cast<int>(Code::internal) == 3);
  CHECK(static_cast<int>(Code::invalid_argument) == 4);
  CHECK(static_cast<int>(Code::invalid_usage) == 5);
  CHECK(static_cast<int>(Code::remote) == 6);
  CHECK(static_cast<int>(Code::timeout) == 8);
}
