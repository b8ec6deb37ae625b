// Which of NCCL's algorithms and protocols is best at which size, or gyre beside it, by times that were measured in rounds, and from how
// many bytes on. NCCL's own choice stands where none is faster by more than the rounds differ, and outside of the sizes that were measured;
// gyre is chosen where it is faster by as much than all that was forced, too, and NCCL's choice is then for where gyre is not.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gyre::perf {

/// Microseconds of a call by its size, one for each round.
using RoundTimes = std::map<uint64_t, std::vector<double>>;

struct SizeChoice {
  uint64_t bytes = 0;
  double own_us = 0, own_spread = 0;  ///< median of NCCL's own choice, and the most less the least
  std::string best;                   ///< the least median of what was forced; empty: nothing was
  double best_us = 0;
  std::string chosen;        ///< of NCCL's
  double gyre_us = 0;        ///< gyre's median; 0: it was not measured
  bool gyre_beside = false;  ///< gyre is chosen
};

/// For each size of NCCL's own, which is one of them (nccls_own). A choice that was best at the size before stays where it is as good.
std::vector<SizeChoice> choose_by_times(const std::map<std::string, RoundTimes>&);

/// From how many bytes on, and what.
struct Threshold {
  uint64_t from;
  std::string chosen;
  bool gyre_beside = false;

  bool operator==(const Threshold&) const = default;
};
/// The first is from 0.
using Thresholds = std::vector<Threshold>;
/// Changes lie in the geometric middle of two sizes. At least one size.
Thresholds thresholds_of(const std::vector<SizeChoice>&);

}  // namespace gyre::perf
