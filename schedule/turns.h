// An order of steps for a rank that runs all its programs as one, a step at a time and each to its end, as a GPU's stream does. Any order
// of a rank's own would do for data; but where two ranks differ in which of two channels goes first, each may wait for the other for ever.
#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "schedule/run.h"

namespace gyre::schedule {

/// A step of a program, for one slice.
struct Turn {
  uint32_t channel = 0;
  uint32_t strand = 0;
  Cursor cursor;
};

/// All steps of the rank in one round. They are its part of one order of all ranks' steps, in which each has what arrives and room for what
/// it sends when its turn comes, `credits` messages under way on a connection. So ranks that all keep to theirs, round after round, never
/// get stuck, however long a step takes. Error, Code::internal: there is no such order.
Result<std::vector<Turn>> turns(const Schedule&, Rank, uint32_t credits, uint32_t slices);

}  // namespace gyre::schedule
