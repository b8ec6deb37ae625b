// Sums of several arrays in one pass, by the canonical tree (schedule/canonical.h), in ordered numerics: 16- and 8-bit floats are widened
// to float32 as they are read, and rounded once, where the whole is written. For each (type, op) a few loops, compiled once per instruction
// set as those of reduce_host.h are, and with the same bits from every set. Private to canonical.cpp and to the tests.
#pragma once
#include <array>
#include <string_view>

#include "kernels/reduce_host.h"

namespace gyre::kernels {

struct TreeKernels {
  /// dst = the balanced tree over arrays, of each element. dst may equal a source of the same width, else it overlaps none.
  using Tree = void (*)(void* dst, const void* const* sources, size_t count, Factor);
  /// Over 2, 4 and 8 arrays. Parts are elements, of averages multiplied by the factor as they are read; partial sums are not.
  using Trees = std::array<Tree, 3>;

  Trees parts_to_partial;
  Trees parts_to_whole;
  Trees partials_to_partial;
  Trees partials_to_whole;
  /// partial = part times the factor; rounded, where the partial sum is no wider
  void (*scale)(void* partial, const void* part, size_t count, Factor);
  /// partial = part
  void (*widen)(void* partial, const void* part, size_t count);
  /// whole = partial, rounded
  void (*narrow)(void* whole, const void* partial, size_t count);
};

/// The fastest for this processor; the index of n arrays in Trees is log2(n) - 1. max and min, whose order does not matter, are here too.
const TreeKernels& tree_kernels(DataType, ReduceOp);
/// Of one instruction set, as arithmetic() has them.
const TreeKernels* tree_kernels(DataType, ReduceOp, std::string_view isa);

}  // namespace gyre::kernels
