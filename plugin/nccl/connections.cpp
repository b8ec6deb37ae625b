#include "plugin/nccl/connections.h"

#include <cstdlib>
#include <string_view>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace gyre::plugin::nccl {
namespace {

constexpr const char* connections_variable = "CUDA_DEVICE_MAX_CONNECTIONS";

std::string_view environment_of(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr ? text : "";
}

/// Known before an NCCL is looked for, which would load it into every process that gyre is loaded into.
bool will_run_collectives() { return environment_of("GYRE_NCCL") == "off" || !environment_of("GYRE_COLLECTIVES").empty(); }

// Others may read the environment meanwhile, where gyre is loaded later; and CUDA has started then.
bool may_set_connections() {
#if __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded != 0;
#else
  return true;
#endif
}

const bool connections_given = std::getenv(connections_variable) == nullptr && will_run_collectives() && may_set_connections() &&
                               ::setenv(connections_variable, "32", 0) == 0;

}  // namespace

bool gave_connections() noexcept { return connections_given; }

}  // namespace gyre::plugin::nccl
