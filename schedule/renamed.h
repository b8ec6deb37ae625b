// A schedule for ranks in another order: families write theirs for positions 0, 1, …, of which neighbours deal with each other most; which
// rank is at a position follows from where the ranks are (topo/channels.h).
#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"

namespace gyre::schedule {

/// The rank at each position.
using RankOrder = std::vector<Rank>;
/// The position of a rank. Requires: it is in the order.
Rank position_of(const RankOrder&, Rank);

/// The schedule with, on channel c, the rank orders[c % orders.size()][p] where `made` has p; blocks of buffers that have one per rank are
/// those ranks' blocks. To be verified as any other. Error: invalid_argument where an order is none of all ranks, or orders differ in who
/// is the root; invalid_usage where the blocks of a step are not evenly spaced in the new order, as a step must have them, naming it.
Result<Schedule> renamed(const Schedule& made, std::span<const RankOrder> orders);

}  // namespace gyre::schedule
