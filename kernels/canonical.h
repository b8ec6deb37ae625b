// Reductions in ordered numerics: the bits depend on the ranks' inputs and on nothing else. Parts are reduced by the canonical tree
// (schedule/canonical.h). Of 16- and 8-bit floats partial sums are float32, and the whole is rounded once; of float32 and float64 every sum
// of the tree is rounded, as usual; sums and products of integers wrap, and so are the same in any order. A part that is multiplied
// (premul_sum, and averages of floats, by T(1/n) as NCCL has it) is multiplied in the type of partial sums, and never fused into a sum.
// Which NaN a NaN is, nobody promises.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/tree_kernels.h"
#include "schedule/step.h"

namespace gyre::kernels {

/// Bytes of a partial sum's element.
constexpr size_t partial_size(DataType type) {
  const bool small_float = !is_integer(type) && size_of(type) < 4;
  return small_float ? sizeof(float) : size_of(type);
}

/// What is bound once to a call and then used by one thread, allocating nothing.
class CanonicalReduction {
 public:
  /// For calls of this type and operation on so many ranks, whose steps have no more sources than that.
  void bind(DataType, ReduceOp, int ranks);

  struct Source {
    const std::byte* data = nullptr;
    bool partial = false;            ///< a partial sum's elements, else an input's
    const Factor* factor = nullptr;  ///< what a part is multiplied by first, where it is not an average; null: nothing
  };
  /// dst = the sources reduced, in the order given or by the canonical tree of so many. dst has `count` elements, of an input's type if
  /// `whole`, else of a partial sum's; it may be a source of the same width, else it overlaps none. One source: it is converted.
  /// An average of integers is not divided yet.
  void operator()(std::byte* dst, bool whole, std::span<const Source> sources, schedule::Association association, size_t count);
  /// Divides the whole where the operation is an average of integers.
  void divide(std::byte* whole, size_t count) const;

 private:
  static constexpr size_t block_bytes = 4096;
  struct alignas(64) Block {
    std::byte bytes[block_bytes];
  };
  const TreeKernels::Tree* one_pass(std::span<const Source> sources, bool whole) const;
  void call(TreeKernels::Tree tree, std::byte* dst, std::span<const Source> sources, size_t offset, size_t count) const;
  const std::byte* partial(std::span<const Source> sources, size_t first, size_t end, size_t offset, size_t count, size_t depth);
  const std::byte* one(const Source& source, size_t offset, size_t count, size_t depth);
  void convert(std::byte* dst, bool whole, const Source& source, size_t count);
  void reduce(std::byte* dst, bool whole, std::span<const Source> sources, schedule::Association association, size_t offset, size_t count);

  const TreeKernels* kernels_ = nullptr;
  const Arithmetic* arithmetic_ = nullptr;
  size_t element_ = 1;
  size_t partial_ = 1;
  uint64_t ranks_ = 1;
  bool averages_ = false;  // floats: every part is multiplied by factor_
  Factor factor_;
  std::vector<Block> blocks_;  // by depth in the tree
};

/// dst = the reduction of all ranks' inputs, which are in the order of ranks, as every ordered collective gives it. `factors`: of
/// premul_sum, one per rank; else empty. dst may be one of the inputs. In one pass over 2, 4 and 8 inputs; with other numbers, and
/// premul_sum, it allocates: who calls often keeps a CanonicalReduction.
void reduce_canonical(void* dst, std::span<const void* const> inputs, size_t count, DataType type, ReduceOp op,
                      std::span<const Factor> factors = {});

}  // namespace gyre::kernels
