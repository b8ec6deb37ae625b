// What ranks put into a collective and what must come out, computed without the engine, its kernels or their number formats. Inputs are
// small values chosen per (rank, element) so that the exact result is a value of the type whatever the order of reduction; only averages of
// floats over a number of ranks that is no power of two are compared within a bound. Pre-multiplied sums have a scalar for each rank, by
// which they stay exact, too.
#pragma once
#include <cstddef>

#include "base/types.h"

namespace gyre::perf {

/// The bits of the element that the rank's input is multiplied by (engine::Call::scalar), unlike its neighbours'; 0 where the operation
/// takes none.
uint64_t input_scalar(DataType, ReduceOp, Rank);
/// Writes elements [first, first + count) of the rank's input to a reduction.
void fill_input(void* data, size_t count, DataType, ReduceOp, Rank rank, int ranks, size_t first = 0);
/// How many of the elements are not the reduction of elements [first, first + count) of all ranks' inputs.
size_t count_wrong(const void* data, size_t count, DataType, ReduceOp, int ranks, size_t first = 0);

/// The same for what is only moved: any bits, of which all must arrive.
void fill_bits(void* data, size_t count, DataType, Rank rank, size_t first = 0);
size_t count_wrong_bits(const void* data, size_t count, DataType, Rank rank, size_t first = 0);

}  // namespace gyre::perf
