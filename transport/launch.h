// What the launcher's environment says about this process: its rank, the number of ranks, and where rank 0 is. Knows torchrun, Open MPI's
// mpirun, MPICH's mpirun (hydra) and srun; GYRE_RANK, GYRE_SIZE and GYRE_ROOT say it without a launcher.
// Only reads; the one exception is MPICH, whose PMI is spoken to (once in a process, see pmi.h) to learn rank 0's address.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "transport/bootstrap.h"

namespace gyre::transport {

/// Where variables are looked up, so that tests bring their own.
struct Environment {
  std::function<std::optional<std::string>(const char* name)> get;

  static Environment of_process();
};

/// Where and as whom to join; empty when no launcher is seen. GYRE_ROOT=host:port gives the address whatever the launcher says.
/// Errors name the variable.
Result<std::optional<Rendezvous>> rendezvous_from_environment(const Environment&);

/// Equal for two processes that share memory and loopback addresses: GYRE_HOSTID, or this boot's id and the network namespace.
std::string host_identity(const Environment&);

/// The first host of srun's short form: "gpu[003-010,12],login1" -> "gpu003"; empty when it is none.
std::string first_host(std::string_view list);
/// The first address of "1973747712.0;tcp://192.0.2.2,10.0.0.2:55939;tcp6://[fd00::2]:60767" that is not loopback; empty when there is
/// none.
std::string first_ipv4(std::string_view uri);

}  // namespace gyre::transport
