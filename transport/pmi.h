// Enough of PMI-1, the line protocol between a rank and the mpirun that started it (MPICH's hydra), to give all ranks a text of rank 0's:
//
//   cmd=init pmi_version=1 pmi_subversion=1      -> cmd=response_to_init rc=0 …
//   cmd=get_my_kvsname                           -> cmd=my_kvsname kvsname=K
//   cmd=put kvsname=K key=gyre-root value=V      -> cmd=put_result rc=0 …        (rank 0)
//   cmd=barrier_in                               -> cmd=barrier_out rc=0
//   cmd=get kvsname=K key=gyre-root              -> cmd=get_result rc=0 value=V
//   cmd=finalize                                 -> cmd=finalize_ack
//
// finalize is needed, or mpirun takes our exit for a crash; and it ends PMI for the process. So this is for programs that do not
// call MPI_Init; others give GYRE_ROOT.
#pragma once
#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/types.h"

namespace gyre::transport {

struct SharedByPmi {
  std::string job;   ///< the key-value space's name, unique to the job
  std::string text;  ///< rank 0's
};

/// Rank 0's `mine` on all ranks, which must all call this; `mine` has no blanks. Leaves `fd` open.
Result<SharedByPmi> share_by_pmi(int fd, Rank rank, std::string_view mine, std::chrono::milliseconds timeout = std::chrono::seconds(30));

/// This host's first IPv4 address that is up and not loopback; 127.0.0.1 when there is none.
std::string own_address();

}  // namespace gyre::transport
