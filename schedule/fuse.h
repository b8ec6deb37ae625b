// Rewrites a schedule so that data is touched once: what arrives is sent on in the step that receives it.
#pragma once
#include "schedule/schedule.h"

namespace gyre::schedule {

/// The same flows with fewer passes: a send of what the step before it has just written becomes part of that step (rrc + s = rrcs,
/// rc + s = rcs), and a partial sum that nobody reads again before it is overwritten is not stored (rrcs -> rrs). Message order on
/// every connection stays as it was. To be verified like any other schedule.
Schedule fuse(Schedule);

}  // namespace gyre::schedule
