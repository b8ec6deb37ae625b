#include "transport/ucx_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <tuple>
#include <type_traits>

#include "transport/ucx_functions.h"
#include "transport/ucx_library.h"

namespace gyre::transport::ucx {
namespace {

template <class Function>
struct Signature;

template <class R, class... Arguments>
struct Signature<R(Arguments...)> {
  using Returned = R;
  template <size_t i>
  using Argument = std::tuple_element_t<i, std::tuple<Arguments...>>;

  /// What stands in the table for a function that is not there.
  static R refuse(Arguments...) {
    if constexpr (std::is_same_v<R, ucs_status_t>) {
      return UCS_ERR_UNSUPPORTED;
    } else if constexpr (std::is_same_v<R, ucs_status_ptr_t>) {
      return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
    } else if constexpr (std::is_same_v<R, const char*>) {
      return "UCX is not loaded";
    } else {
      return R();
    }
  }
};

#define GYRE_SLOT(f, n) decltype(&::f) f = Signature<decltype(::f)>::refuse;  // NOLINT(bugprone-macro-parentheses): a name, not a value
struct Functions {
  GYRE_UCX_FUNCTIONS(GYRE_SLOT)
};
struct DeviceFunctions {
  GYRE_UCX_DEVICE_FUNCTIONS(GYRE_SLOT)
};
#undef GYRE_SLOT

// Each is written once, before anybody is told that it may be used.
constinit Functions functions;
constinit DeviceFunctions device_functions;

#define GYRE_NAME(f, n) #f,
constexpr std::array function_names{GYRE_UCX_FUNCTIONS(GYRE_NAME) GYRE_UCX_DEVICE_FUNCTIONS(GYRE_NAME)};
#undef GYRE_NAME

struct Version {
  unsigned major = 0, minor = 0, release = 0;
  std::string file{};
  std::string text() const { return fmt::format("UCX {}.{}.{} ({})", major, minor, release, file); }
};

/// What load_ucx() found, for load_ucx_devices().
struct Found {
  void* library = nullptr;
  Version version{};
};

Found& found_ucx() {
  static Found one;
  return one;
}

/// Looks up functions; remembers the first that the library lacks.
struct Lookup {
  const char* missing = nullptr;

  template <class Slot>
  void fill(Slot& slot, const char* name) {
    void* symbol = dlsym(found_ucx().library, name);
    if (symbol == nullptr && missing == nullptr) missing = name;
    slot = reinterpret_cast<Slot>(symbol);
  }
  Status result() const {
    if (missing == nullptr) return {};
    return Error{Code::system, fmt::format("{} lacks {}", found_ucx().version.text(), missing)};
  }
};

Result<Version> version_of_ucx(void* library) {
  auto* const get_version = reinterpret_cast<decltype(&::ucp_get_version)>(dlsym(library, "ucp_get_version"));
  if (get_version == nullptr) return Error{Code::system, fmt::format("{} is no UCX: it lacks ucp_get_version", file_of_library(library))};
  Version version{0, 0, 0, file_of(reinterpret_cast<const void*>(get_version))};
  get_version(&version.major, &version.minor, &version.release);
  if (version.major == oldest_major && version.minor >= oldest_minor) return version;
  return Error{Code::system,
               fmt::format("{} can't be used: gyre needs {}.{} or a later {}.x", version.text(), oldest_major, oldest_minor, oldest_major)};
}

#define GYRE_FILL(f, n) lookup.fill(filled.f, #f);

Status load_functions() {
  found_ucx().library = GYRE_TRY(open_library(function_names));
  found_ucx().version = GYRE_TRY(version_of_ucx(found_ucx().library));
  Lookup lookup;
  Functions filled;
  GYRE_UCX_FUNCTIONS(GYRE_FILL)
  GYRE_TRY(lookup.result());
  functions = filled;
  return {};
}

Status load_device_functions() {
  GYRE_TRY(load_ucx());
  const Version& version = found_ucx().version;
  if (version.major != UCP_API_MAJOR || version.minor != UCP_API_MINOR) {
    return Error{Code::system, fmt::format("{} can't be asked for its networks: gyre was compiled for {}.{}", version.text(), UCP_API_MAJOR,
                                           UCP_API_MINOR)};
  }
  Lookup lookup;
  DeviceFunctions filled;
  GYRE_UCX_DEVICE_FUNCTIONS(GYRE_FILL)
  GYRE_TRY(lookup.result());
  device_functions = filled;
  return {};
}
#undef GYRE_FILL

}  // namespace

Status load_ucx() {
  static const Status loaded = load_functions();
  return loaded;
}

std::string version() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  return major == 0 ? "" : fmt::format("{}.{}.{}", major, minor, release);
}

Status load_ucx_devices() {
  static const Status loaded = load_device_functions();
  return loaded;
}

}  // namespace gyre::transport::ucx

// The functions by UCX's names. Hidden, so that they are nobody's but ours; a call costs one jump more.
#define GYRE_PARAMETER(f, i) gyre::transport::ucx::Signature<decltype(::f)>::Argument<i> a##i
#define GYRE_PARAMETERS_0(f)
#define GYRE_PARAMETERS_1(f) GYRE_PARAMETER(f, 0)
#define GYRE_PARAMETERS_2(f) GYRE_PARAMETERS_1(f), GYRE_PARAMETER(f, 1)
#define GYRE_PARAMETERS_3(f) GYRE_PARAMETERS_2(f), GYRE_PARAMETER(f, 2)
#define GYRE_PARAMETERS_4(f) GYRE_PARAMETERS_3(f), GYRE_PARAMETER(f, 3)
#define GYRE_PARAMETERS_5(f) GYRE_PARAMETERS_4(f), GYRE_PARAMETER(f, 4)
#define GYRE_PARAMETERS_6(f) GYRE_PARAMETERS_5(f), GYRE_PARAMETER(f, 5)
#define GYRE_PARAMETERS_7(f) GYRE_PARAMETERS_6(f), GYRE_PARAMETER(f, 6)
#define GYRE_ARGUMENTS_0
#define GYRE_ARGUMENTS_1 a0
#define GYRE_ARGUMENTS_2 GYRE_ARGUMENTS_1, a1
#define GYRE_ARGUMENTS_3 GYRE_ARGUMENTS_2, a2
#define GYRE_ARGUMENTS_4 GYRE_ARGUMENTS_3, a3
#define GYRE_ARGUMENTS_5 GYRE_ARGUMENTS_4, a4
#define GYRE_ARGUMENTS_6 GYRE_ARGUMENTS_5, a5
#define GYRE_ARGUMENTS_7 GYRE_ARGUMENTS_6, a6
#define GYRE_FORWARD_BY(table, f, n)                                                                                         \
  __attribute__((visibility("hidden"))) gyre::transport::ucx::Signature<decltype(::f)>::Returned f(GYRE_PARAMETERS_##n(f)) { \
    return gyre::transport::ucx::table.f(GYRE_ARGUMENTS_##n);                                                                \
  }
#define GYRE_FORWARD(f, n) GYRE_FORWARD_BY(functions, f, n)
#define GYRE_FORWARD_DEVICE(f, n) GYRE_FORWARD_BY(device_functions, f, n)
extern "C" {
GYRE_UCX_FUNCTIONS(GYRE_FORWARD)
GYRE_UCX_DEVICE_FUNCTIONS(GYRE_FORWARD_DEVICE)
}
