// NCCL timed by a user's own nccl-tests command, once with each algorithm and protocol forced and once with none, and gyre beside it where
// there is its library, in rounds, all in turn. A run before them shows what NCCL makes of each; what fails, in a round twice, runs as
// another, or gives wrong results is left out.
#pragma once
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "perf/nccl_by_times.h"

namespace gyre::perf {

struct NcclTrial {
  Collective collective = Collective::all_reduce;
  int ranks_per_node = 2;
  int nodes = 1;
  int rounds = 5;
  std::chrono::seconds limit{600};   ///< of one run
  std::vector<std::string> command;  ///< {env}: perf/nccl_forced.h
  std::string library;               ///< libgyre-nccl.so; empty: none, and gyre is not timed
};

struct NcclTimes {
  std::map<std::string, RoundTimes> us;  ///< of what is not left out, NCCL's own choice among it
  int rounds = 0;                        ///< that are whole; fewer than are wanted where NCCL's own choice failed in the next
  std::string device;                    ///< empty: not said
  std::string version;                   ///< NCCL's
};

/// Prints how it goes on. Error: NCCL's own choice can't be run or read, or nothing but it; or other ranks ran than are said,
/// or elsewhere.
Result<NcclTimes> time_nccl(const NcclTrial&);

}  // namespace gyre::perf
