// Rewrites a schedule so that data is touched once: what arrives is sent on in the step that receives it.
#pragma once
#include "schedule/schedule.h"

namespace gyre::schedule {

/// The same flows with fewer passes: a send of what the step before it has just written becomes part of that step (rrc + s = rrcs,
/// rc + s = rcs), so does a copy of what an earlier step has sent (s + c = cs), and a partial sum that nobody reads again before it is
/// overwritten is not stored (rrcs -> rrs). Scratch shrinks to what is left of it. Message order on every connection stays as it was. To be
/// verified like any other schedule.
///
/// `staged` keeps the copies to scratch that a schedule sends from: mapped connections need them, where a peer reads the memory of the
/// sender in its own time; others have slots, or complete a send before its receiver runs, and go without.
Schedule fuse(Schedule, bool staged = false);

}  // namespace gyre::schedule
