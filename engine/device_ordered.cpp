#include "engine/device_ordered.h"

#include <algorithm>
#include <array>

#include "kernels/canonical.h"
#include "kernels/ordered.h"
#include "schedule/canonical.h"

namespace gyre::engine {

using kernels::Shape;
using schedule::Association;
using schedule::CanonicalTree;
using schedule::Form;

DeviceOrderedReduction::DeviceOrderedReduction(const Plan& plan, uint64_t scalar, const Staging& staging, std::vector<DeviceKernel>& out)
    : call_(plan.call()),
      staging_(staging),
      out_(out),
      element_(size_of(call_.type)),
      partial_(kernels::partial_size(call_.type)),
      scalar_(call_.op == ReduceOp::avg ? kernels::avg_scalar_bits(call_.type, plan.schedule().ranks) : scalar) {
  if (converts()) factor_ = static_cast<float>(kernels::factor_of(call_.type, scalar_).real);
}

DeviceOrderedReduction::Operand DeviceOrderedReduction::operand(const DeviceSource& source) const {
  const bool partial = !source.own && wide(source.form);
  auto* const data = const_cast<std::byte*>(source.data);  // NOLINT(cppcoreguidelines-pro-type-const-cast): sources are only read
  return {data, partial, call_.op == ReduceOp::avg ? !partial : source.own && multiplies_own()};
}

void DeviceOrderedReduction::write(std::span<const DeviceSource> sources, std::span<std::byte* const> sinks, size_t count, Form value,
                                   Association association) {
  if (count == 0 || sinks.empty()) return;
  // What is only passed on stays as it is, but for the part that its rank multiplies, and the only rank's, which is the whole; that, too,
  // where it is not multiplied: an 8-bit infinity is no result of a rounding.
  const Operand first = operand(sources[0]);
  const bool passed_on = sources.size() == 1 && !(sources[0].own && (multiplies_own() || (value == Form::whole && first.multiplied)));
  if (passed_on) return pass_on({first.data, wide(value)}, sinks, count);
  std::vector<Operand> operands;
  for (const DeviceSource& source : sources) operands.push_back(operand(source));
  // So long that its sums have room.
  const size_t most = sources.size() == 1 ? count : staging_.place_bytes / partial_;
  for (size_t at = 0; at < count; at += most) write_block(operands, sinks, {at, std::min(most, count - at)}, wide(value), association);
}

void DeviceOrderedReduction::write_block(std::span<const Operand> sources, std::span<std::byte* const> sinks, const Block& block,
                                         bool partial, Association association) {
  const size_t n = sources.size();
  std::vector<Operand> last;
  if (n == 1) {
    last = {{at(sources[0], block), sources[0].partial, sources[0].multiplied}};
  } else if (association == Association::tree) {
    const size_t middle = CanonicalTree(static_cast<uint32_t>(n)).middle(0, static_cast<uint32_t>(n));
    last.push_back(subtree(sources, 0, middle, block, 0));
    last.push_back(subtree(sources, middle, n, block, 1));
  } else {
    last.push_back(leaf(sources[0], block, 0));
    for (size_t i = 1; i < n; ++i) {
      if (i > 1) {
        const Operand so_far = sum(0);
        add(last, std::span(&so_far, 1), block.count);
        last = {so_far};
      }
      last.push_back(leaf(sources[i], block, 1));
    }
  }
  std::vector<Operand> out;
  for (std::byte* const sink : sinks) out.push_back({at({sink, partial}, block), partial});
  add(last, std::span(out).first(std::min<size_t>(2, out.size())), block.count);
  std::vector<std::byte*> further;
  for (size_t i = 2; i < out.size(); ++i) further.push_back(out[i].data);
  pass_on(out[0], further, block.count);
}

// One of the tree's sums, in the sum of this depth; deeper ones are used on the way.
DeviceOrderedReduction::Operand DeviceOrderedReduction::subtree(std::span<const Operand> sources, size_t first, size_t end,
                                                                const Block& block, size_t depth) {
  if (end - first == 1) return leaf(sources[first], block, depth);
  const size_t middle =
      CanonicalTree(static_cast<uint32_t>(sources.size())).middle(static_cast<uint32_t>(first), static_cast<uint32_t>(end));
  const Operand left = subtree(sources, first, middle, block, depth);
  const Operand right = subtree(sources, middle, end, block, depth + 1);
  const std::array both{left, right};
  const Operand result = sum(depth);
  add(both, std::span(&result, 1), block.count);
  return result;
}

// A wide type's is multiplied by a kernel of its own.
DeviceOrderedReduction::Operand DeviceOrderedReduction::leaf(const Operand& source, const Block& block, size_t depth) {
  const Operand here{at(source, block), source.partial, source.multiplied};
  if (converts() || !source.multiplied) return here;
  const Operand multiplied = sum(depth);
  add(std::span(&here, 1), std::span(&multiplied, 1), block.count);
  return multiplied;
}

DeviceOrderedReduction::Operand DeviceOrderedReduction::sum(size_t depth) {
  keeps_sums_ = true;
  sums_ = std::max(sums_, depth + 1);
  return {staging_.sum(depth), true};
}

void DeviceOrderedReduction::add(std::span<const Operand> sources, std::span<const Operand> sinks, size_t count) {
  DeviceKernel& kernel = out_.emplace_back();
  kernel.type = call_.type;
  for (size_t i = 0; i < sources.size(); ++i) kernel.args.sources[i] = sources[i].data;
  for (size_t i = 0; i < sinks.size(); ++i) kernel.args.destinations[i] = sinks[i].data;
  kernel.args.count = count;
  const bool two = sources.size() == 2;
  if (converts()) {
    kernel.converts = true;
    kernel.op = call_.op == ReduceOp::prod ? ReduceOp::prod : ReduceOp::sum;
    kernel.args.scalar = kernels::ordered_scalar(
        factor_, (sources[0].partial ? kernels::first_is_partial : 0U) | (sources[0].multiplied ? kernels::first_multiplied : 0U) |
                     (two && sources[1].partial ? kernels::second_is_partial : 0U) |
                     (two && sources[1].multiplied ? kernels::second_multiplied : 0U) | (sinks[0].partial ? kernels::to_partial : 0U));
    return;
  }
  if (two)
    kernel.shape = sinks.size() == 2 ? Shape::two_to_two : Shape::two_to_one;
  else
    kernel.shape = sinks.size() == 2 ? Shape::one_to_two : Shape::one_to_one;
  const bool multiplied = !two && sources[0].multiplied;
  kernel.op = multiplied ? call_.op : call_.op == ReduceOp::prod && two ? ReduceOp::prod : ReduceOp::sum;
  kernel.args.scalar = multiplied ? scalar_ : 0;
}

void DeviceOrderedReduction::pass_on(const Operand& source, std::span<std::byte* const> sinks, size_t count) {
  if (!sinks.empty() && sinks[0] == source.data) sinks = sinks.subspan(1);
  for (size_t i = 0; i < sinks.size(); i += 2) {
    const size_t at_once = std::min<size_t>(2, sinks.size() - i);
    DeviceKernel& kernel = out_.emplace_back();
    kernel.type = source.partial && converts() ? DataType::float32 : call_.type;
    kernel.shape = at_once == 2 ? Shape::one_to_two : Shape::one_to_one;
    kernel.args.sources[0] = source.data;
    kernel.args.count = count;
    std::copy_n(sinks.begin() + static_cast<ptrdiff_t>(i), at_once, kernel.args.destinations);
  }
}

}  // namespace gyre::engine
