// Reductions in host memory: for each (type, op) a few loops over arrays, with NCCL's arithmetic (kernels/op.h, kernels/avg.h) to the
// bit. The loops are compiled once per instruction set and the best set that this processor has is chosen on first use. Every set
// gives the same bits, except for which NaN a NaN is. Safe from any thread. It must not know: ranks, chunks, schedules.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/types.h"

namespace gyre::kernels {

/// What a rank's input is multiplied by first: a value of the element's type, of floats as a double, of integers as it is, modulo 2^64.
struct Factor {
  double real = 1;
  uint64_t whole = 1;
};

/// Elementwise kernels of one (type, op). Pointers need the element's alignment only; dst may equal an input exactly, otherwise
/// must not overlap it. A pre-multiplied sum, and an average of floats, is: scale at the first sender, scale_combine at every later one; an
/// average of integers: combine at every hop and divide at the last.
struct Arithmetic {
  /// dst = a op b; the sum for avg and premul_sum
  void (*combine)(void* dst, const void* a, const void* b, size_t count);
  /// dst = x * s rounded to the type; integers wrap; null unless premul_sum, or avg of floats
  void (*scale)(void* dst, const void* x, size_t count, Factor s);
  /// dst = x * s + received, rounded once (8-bit floats: x * s rounded, then the sum rounded); null where scale is
  void (*scale_combine)(void* dst, const void* x, const void* received, size_t count, Factor s);
  /// dst = dst / n, truncated toward zero; null unless avg of integers
  void (*divide)(void* dst, size_t count, uint64_t n);
  /// dst = other = a op b: what two memories, which may be a and b, are to hold, in one pass
  void (*combine_both)(void* dst, void* other, const void* a, const void* b, size_t count);
};

/// The fastest for this processor.
const Arithmetic& arithmetic(DataType, ReduceOp);
/// Of one instruction set: "portable", "avx2" or "avx512"; null where the processor or the build hasn't got it.
const Arithmetic* arithmetic(DataType, ReduceOp, std::string_view isa);
/// The instruction set that was chosen.
std::string_view isa();

/// 1/ranks as a value of the float type, the scalar of its average; 1.0 for integers.
double avg_scalar(DataType, int ranks);
/// The same as an element's bits; of premul_sum's neutral scalar, with ranks = 1, also of integers.
uint64_t avg_scalar_bits(DataType, int ranks);
/// What an element of these bits multiplies by; bits beyond the element's are not looked at.
Factor factor_of(DataType, uint64_t bits);

void copy(void* dst, const void* src, size_t bytes);
/// Copies past the caches: to memory that another processor has read and will read next, where each line would first be taken back from the
/// other's cache, or to more memory than stays in one, where it would first be read. fence_away() before another thread is told.
void copy_away(void* dst, const void* src, size_t bytes);
void fence_away();

}  // namespace gyre::kernels
