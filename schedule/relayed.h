// Schedules where some ranks do not reach each other: others pass their messages on.
#pragma once
#include <utility>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"

namespace gyre::schedule {

/// Pairs of ranks that do not reach each other, in neither direction.
using RankPairs = std::vector<std::pair<Rank, Rank>>;

/// Whether so many ranks reach each other by way of others. Requires: the pairs are of those ranks.
bool connected(int ranks, const RankPairs& missing);

/// The schedule without a message between these pairs: each goes along the shortest way there is (of equal ones over the lowest ranks),
/// on strands of their own for those between. To be verified as any other. Error: invalid_argument where a rank is none; invalid_usage
/// where no way is left, or two ranks would have messages of two kinds to each other on one channel, whose order nothing keeps.
Result<Schedule> relayed(const Schedule&, const RankPairs& missing);

}  // namespace gyre::schedule
