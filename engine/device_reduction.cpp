#include "engine/device_reduction.h"

#include <algorithm>
#include <utility>

#include "kernels/reduce_host.h"

namespace gyre::engine {

using kernels::Shape;

DeviceReduction::DeviceReduction(const Call& call, int ranks, uint64_t scalar, const Staging& staging, std::vector<DeviceKernel>& out)
    : call_(call),
      ranks_(static_cast<uint64_t>(ranks)),
      scalar_(call.op == ReduceOp::avg ? kernels::avg_scalar_bits(call.type, ranks) : scalar),
      staging_(staging),
      out_(out) {}

void DeviceReduction::write(std::vector<Source> sources, std::span<std::byte* const> sinks, size_t count, const schedule::Fact& fact) {
  if (count == 0) return;
  if (sources.size() == 1) {
    if (sources[0].own && scales()) return multiply(sources[0].data, sinks, count);
    return copy(sources[0].data, sinks, count);
  }
  if (scales()) multiply_own(sources, count, fact.replicated);
  reduce(sources, sinks, count, fact.complete);
}

// A kernel multiplies the first of its sources.
void DeviceReduction::multiply_own(std::vector<Source>& sources, size_t count, bool replicated) {
  const auto own = std::find_if(sources.begin(), sources.end(), [](const Source& source) { return source.own; });
  if (own == sources.end()) return;
  if (replicated) {  // other ranks got our part multiplied and rounded, and must get the same bits as we do: no fused multiply-add
    std::byte* const multiplied = sum(1);
    multiply(own->data, std::span(&multiplied, 1), count);
    *own = {multiplied, false};
    return;
  }
  const auto before = static_cast<size_t>(own - sources.begin());
  if (before > 1) {
    std::byte* const so_far = sum(0);
    reduce(std::span(sources).first(before), std::span(&so_far, 1), count, false);
    sources.erase(sources.begin() + 1, own);
    sources[0] = {so_far, false};
  }
  if (before > 0) std::swap(sources[0], sources[1]);
}

void DeviceReduction::reduce(std::span<const Source> sources, std::span<std::byte* const> sinks, size_t count, bool last) {
  const ReduceOp hop = call_.op == ReduceOp::avg || call_.op == ReduceOp::premul_sum ? ReduceOp::sum : call_.op;
  Source first = sources[0];
  const auto kernel = [&](Shape shape, size_t next, bool divided) -> kernels::StepArgs& {
    const bool multiplied = first.own && scales();
    DeviceKernel& added = add(shape, multiplied || divided ? call_.op : hop, divided ? ranks_ : scalar_, count);
    added.args.sources[0] = first.data;
    added.args.sources[1] = sources[next].data;
    if (shape == Shape::three_to_one) added.args.sources[2] = sources[next + 1].data;
    return added.args;
  };
  size_t next = 1;
  for (; sources.size() - next > 2; next += 2) {
    std::byte* const so_far = sum(0);
    kernel(Shape::three_to_one, next, false).destinations[0] = so_far;
    first = {so_far, false};
  }
  const bool three = sources.size() - next == 2;
  const size_t at_once = three ? 1 : std::min<size_t>(2, sinks.size());
  kernels::StepArgs& args = kernel(three          ? Shape::three_to_one
                                   : at_once == 2 ? Shape::two_to_two
                                                  : Shape::two_to_one,
                                   next, last && divides());
  std::copy_n(sinks.begin(), at_once, args.destinations);
  copy(sinks[0], sinks.subspan(at_once), count);
}

void DeviceReduction::multiply(const std::byte* source, std::span<std::byte* const> sinks, size_t count) {
  const size_t at_once = std::min<size_t>(2, sinks.size());
  kernels::StepArgs& args = add(at_once == 2 ? Shape::one_to_two : Shape::one_to_one, call_.op, scalar_, count).args;
  args.sources[0] = source;
  std::copy_n(sinks.begin(), at_once, args.destinations);
  copy(sinks[0], sinks.subspan(at_once), count);
}

void DeviceReduction::copy(const std::byte* source, std::span<std::byte* const> sinks, size_t count) {
  if (!sinks.empty() && sinks[0] == source) sinks = sinks.subspan(1);
  for (size_t i = 0; i < sinks.size(); i += 2) {
    const size_t at_once = std::min<size_t>(2, sinks.size() - i);
    kernels::StepArgs& args = add(at_once == 2 ? Shape::one_to_two : Shape::one_to_one, ReduceOp::sum, 0, count).args;
    args.sources[0] = source;
    std::copy_n(sinks.begin() + static_cast<ptrdiff_t>(i), at_once, args.destinations);
  }
}

std::byte* DeviceReduction::sum(size_t which) {
  keeps_sums_ = true;
  sums_ = std::max(sums_, which + 1);
  return staging_.sum(which);
}

DeviceKernel& DeviceReduction::add(Shape shape, ReduceOp op, uint64_t scalar, size_t count) {
  DeviceKernel& kernel = out_.emplace_back();
  kernel.type = arithmetic_of(call_);
  kernel.shape = shape, kernel.op = op;
  kernel.args.count = count, kernel.args.scalar = scalar;
  return kernel;
}

}  // namespace gyre::engine
