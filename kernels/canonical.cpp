#include "kernels/canonical.h"

#include <algorithm>
#include <bit>

#include "schedule/canonical.h"

namespace gyre::kernels {

using schedule::Association;
using schedule::CanonicalTree;

void CanonicalReduction::bind(DataType type, ReduceOp op, int ranks) {
  kernels_ = &tree_kernels(type, op);
  arithmetic_ = &arithmetic(type, op);
  element_ = size_of(type);
  partial_ = partial_size(type);
  ranks_ = static_cast<uint64_t>(ranks);
  averages_ = op == ReduceOp::avg && !is_integer(type);
  factor_ = {avg_scalar(type, ranks), 1};
  const auto depth = static_cast<size_t>(std::bit_width(ranks_)) + 2;
  if (blocks_.size() < depth) blocks_.resize(depth);
}

void CanonicalReduction::operator()(std::byte* dst, bool whole, std::span<const Source> sources, Association association, size_t count) {
  if (sources.size() == 1) return convert(dst, whole, sources[0], count);
  const TreeKernels::Tree* pass = association == Association::tree || sources.size() == 2 ? one_pass(sources, whole) : nullptr;
  if (pass != nullptr) return call(*pass, dst, sources, 0, count);
  const size_t block = block_bytes / partial_;
  for (size_t at = 0; at < count; at += block) reduce(dst, whole, sources, association, at, std::min(block, count - at));
}

void CanonicalReduction::divide(std::byte* whole, size_t count) const {
  if (arithmetic_->divide != nullptr) arithmetic_->divide(whole, count, ranks_);
}

// The loop that reduces all of these at once, which are all of one kind; null: there is none.
const TreeKernels::Tree* CanonicalReduction::one_pass(std::span<const Source> sources, bool whole) const {
  const size_t n = sources.size();
  if (n != 2 && n != 4 && n != 8) return nullptr;
  const bool partial = sources[0].partial;
  for (const Source& source : sources) {
    if (source.partial != partial || source.factor != nullptr) return nullptr;
  }
  const TreeKernels::Trees& trees = partial ? (whole ? kernels_->partials_to_whole : kernels_->partials_to_partial)
                                            : (whole ? kernels_->parts_to_whole : kernels_->parts_to_partial);
  return &trees[static_cast<size_t>(std::bit_width(n)) - 2];
}

void CanonicalReduction::call(TreeKernels::Tree tree, std::byte* dst, std::span<const Source> sources, size_t offset, size_t count) const {
  const void* arrays[8] = {};
  for (size_t i = 0; i < sources.size(); ++i) arrays[i] = sources[i].data + offset * (sources[i].partial ? partial_ : element_);
  tree(dst, arrays, count, factor_);
}

// One source as a partial sum: where it lies, or in the block of this depth.
const std::byte* CanonicalReduction::one(const Source& source, size_t offset, size_t count, size_t depth) {
  if (source.partial) return source.data + offset * partial_;
  std::byte* block = blocks_[depth].bytes;
  const std::byte* part = source.data + offset * element_;
  const Factor* factor = averages_ ? &factor_ : source.factor;
  if (factor != nullptr) {
    kernels_->scale(block, part, count, *factor);
  } else if (partial_ != element_) {
    kernels_->widen(block, part, count);
  } else {
    return part;
  }
  return block;
}

// One of the tree's sums, in the block of this depth; deeper ones are used on the way.
const std::byte* CanonicalReduction::partial(std::span<const Source> sources, size_t first, size_t end, size_t offset, size_t count,
                                             size_t depth) {
  if (end - first == 1) return one(sources[first], offset, count, depth);
  std::byte* block = blocks_[depth].bytes;
  const auto these = sources.subspan(first, end - first);
  if (const TreeKernels::Tree* pass = one_pass(these, false)) {
    call(*pass, block, these, offset, count);
    return block;
  }
  const size_t middle =
      CanonicalTree(static_cast<uint32_t>(sources.size())).middle(static_cast<uint32_t>(first), static_cast<uint32_t>(end));
  const void* halves[2] = {};
  halves[0] = partial(sources, first, middle, offset, count, depth);
  halves[1] = partial(sources, middle, end, offset, count, depth + 1);
  kernels_->partials_to_partial[0](block, halves, count, factor_);
  return block;
}

// A block. What is written may be a source, so sums go elsewhere until the last.
void CanonicalReduction::reduce(std::byte* dst, bool whole, std::span<const Source> sources, Association association, size_t offset,
                                size_t count) {
  const size_t n = sources.size();
  const void* halves[2] = {};
  if (association == Association::tree) {
    const size_t middle = CanonicalTree(static_cast<uint32_t>(n)).middle(0, static_cast<uint32_t>(n));
    halves[0] = partial(sources, 0, middle, offset, count, 0);
    halves[1] = partial(sources, middle, n, offset, count, 1);
  } else {
    halves[0] = one(sources[0], offset, count, 0);
    for (size_t i = 1; i + 1 < n; ++i) {
      halves[1] = one(sources[i], offset, count, 1);
      kernels_->partials_to_partial[0](blocks_[0].bytes, halves, count, factor_);
      halves[0] = blocks_[0].bytes;
    }
    halves[1] = one(sources[n - 1], offset, count, 1);
  }
  const auto& trees = whole ? kernels_->partials_to_whole : kernels_->partials_to_partial;
  trees[0](dst + offset * (whole ? element_ : partial_), halves, count, factor_);
}

void CanonicalReduction::convert(std::byte* dst, bool whole, const Source& source, size_t count) {
  const bool multiplied = !source.partial && (averages_ || source.factor != nullptr);
  if (source.partial == !whole && !multiplied) {
    if (dst != source.data) copy(dst, source.data, count * (whole ? element_ : partial_));
    return;
  }
  const size_t block = block_bytes / partial_;
  for (size_t at = 0; at < count; at += block) {
    const size_t n = std::min(block, count - at);
    const std::byte* value = one(source, at, n, 0);
    if (whole) {
      kernels_->narrow(dst + at * element_, value, n);
    } else {
      copy(dst + at * partial_, value, n * partial_);
    }
  }
}

void reduce_canonical(void* dst, std::span<const void* const> inputs, size_t count, DataType type, ReduceOp op,
                      std::span<const Factor> factors) {
  const size_t n = inputs.size();
  auto* out = static_cast<std::byte*>(dst);
  if (factors.empty() && (n == 2 || n == 4 || n == 8)) {
    const TreeKernels& kernels = tree_kernels(type, op);
    kernels.parts_to_whole[static_cast<size_t>(std::bit_width(n)) - 2](dst, inputs.data(), count,
                                                                       {avg_scalar(type, static_cast<int>(n)), 1});
    const Arithmetic& plain = arithmetic(type, op);
    if (plain.divide != nullptr) plain.divide(dst, count, n);
    return;
  }
  CanonicalReduction reduction;
  reduction.bind(type, op, static_cast<int>(n));
  std::vector<CanonicalReduction::Source> sources(n);
  for (size_t i = 0; i < n; ++i) sources[i] = {static_cast<const std::byte*>(inputs[i]), false, factors.empty() ? nullptr : &factors[i]};
  reduction(out, true, sources, Association::tree, count);
  reduction.divide(out, count);
}

}  // namespace gyre::kernels
