// Starts the ranks of a sweep: as processes of this machine, or this process as one rank of a job that a launcher started.
#pragma once
#include <functional>

#include "transport/bootstrap.h"

namespace gyre::perf {

/// One rank's part of the work; its exit code.
using RankMain = std::function<int(const transport::Rendezvous&)>;

/// Forks `ranks` processes that run `rank_main` and waits for all; where there are processors for all, each is bound to one, as mpirun
/// does. Returns 0, or the first exit code that is not; who is left some seconds after a failure is killed. Must be called before this
/// process has threads.
int run_local_ranks(int ranks, std::chrono::milliseconds timeout, const RankMain& rank_main);

}  // namespace gyre::perf
