// What ranks put into a collective and what must come out, computed without the engine, its kernels or their number formats. Inputs are
// small values chosen per (rank, element) so that the exact result is a value of the type whatever the order of reduction; only averages of
// floats over a number of ranks that is no power of two are compared within a bound.
#pragma once
#include <cstddef>

#include "base/types.h"

namespace gyre::perf {

/// Writes rank's input of `count` elements.
void fill_input(void* data, size_t count, DataType, ReduceOp, Rank rank, int ranks);
/// How many of the elements are not the all-reduce of all ranks' inputs.
size_t count_wrong(const void* data, size_t count, DataType, ReduceOp, int ranks);

}  // namespace gyre::perf
