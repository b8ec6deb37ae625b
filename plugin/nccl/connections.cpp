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

/// For the processes that this one starts, as torchrun does: they have that from gyre, too.
constexpr const char* said_by_gyre = "LIBGYRE_NCCL_MAX_CONNECTIONS";
constexpr const char* connections = "32";

bool set_connections() {
  if (std::getenv(connections_variable) != nullptr)
    return environment_of(connections_variable) == connections && environment_of(said_by_gyre) == connections;
  return will_run_collectives() && may_set_connections() && ::setenv(connections_variable, connections, 0) == 0 &&
         ::setenv(said_by_gyre, connections, 1) == 0;
}

const bool connections_given = set_connections();

}  // namespace

bool gave_connections() noexcept { return connections_given; }

}  // namespace gyre::plugin::nccl
