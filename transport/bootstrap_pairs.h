// Finds ranks that wait for each other because they make their calls in different orders, which happens where some ranks send and
// receive among themselves and others are in a call of all ranks. Pure: works on what ranks said when they had waited for long.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "transport/bootstrap_calls.h"

namespace gyre::transport::bootstrap {

/// Ranks each of which waits for the next, the last for the first; none: nobody does.
struct Circle {
  std::vector<Rank> ranks;
  std::string text;
};

/// "calls are in different orders: rank 1 waits in exchange … for message 4 from rank 0, rank 0 waits in call 7 (all_reduce …) for rank 1";
/// empty: nobody waits in a circle. `calls`: by rank, the latest that each has described, which it may have left since.
Circle find_circle(const std::vector<std::optional<Call>>& calls);
inline std::string waits_in_a_circle(const std::vector<std::optional<Call>>& calls) { return find_circle(calls).text; }

}  // namespace gyre::transport::bootstrap
