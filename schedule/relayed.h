// Schedules where some ranks do not reach each other: others pass their messages on.
#pragma once
#include <span>
#include <utility>

#include "base/result.h"
#include "schedule/schedule.h"

namespace gyre::schedule {

/// The schedule without a message between these pairs of ranks, in neither direction: each goes along the shortest way there is (of
/// equal ones over the lowest ranks), on strands of their own for those between. To be verified as any other. Error: invalid_argument
/// where a rank is none; invalid_usage where no way is left, or two ranks would have messages of two kinds to each other on one channel,
/// whose order nothing keeps.
Result<Schedule> relayed(const Schedule&, std::span<const std::pair<Rank, Rank>> missing);

}  // namespace gyre::schedule
