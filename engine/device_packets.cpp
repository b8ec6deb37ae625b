#include "engine/device_packets.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "kernels/reduce_host.h"
#include "schedule/direct.h"

namespace gyre::engine {
namespace {

using kernels::PacketArgs;
using kernels::PacketBuffer;
using kernels::PacketBuffers;

/// Of a schedule whose blocks are one chunk each.
constexpr schedule::Chunks whole_input{schedule::Buffer::input, 0, 1}, whole_output{schedule::Buffer::output, 0, 1};

/// How a rank's program reduces, where it does nothing but send its part to all and reduce all parts; empty: it does anything else.
std::vector<Rank> order_of_exchange(const schedule::Schedule& schedule, Rank rank) {
  const auto& steps = schedule.program(rank, 0).steps;
  const auto others = static_cast<uint32_t>(schedule.ranks - 1);
  if (steps.size() != 2) return {};
  const auto& [sends, reduces] = std::pair(steps[0], steps[1]);
  const bool is_send = sends.from.count == 0 && sends.src == whole_input && !sends.dst.present() && sends.to.count == others;
  const bool is_reduction = reduces.from.count == others && reduces.src == whole_input && reduces.dst == whole_output &&
                            reduces.to.count == 0 && reduces.association == schedule::Association::in_order;
  return is_send && is_reduction ? order_of(schedule, rank, reduces) : std::vector<Rank>();
}

}  // namespace

std::vector<Rank> exchange_order(const schedule::Schedule& schedule) {
  const bool simple = schedule.channels == 1 && schedule.strands == 1 && schedule.chunks == 1;
  if (schedule.collective != Collective::all_reduce || schedule.ranks < 2 || !simple) return {};
  std::vector<Rank> order = order_of_exchange(schedule, 0);
  for (Rank rank = 1; rank < schedule.ranks; ++rank) {
    if (order_of_exchange(schedule, rank) != order) return {};
  }
  return order;
}

// Flags have 32 bits, and none may come again: who has made so many calls goes by steps from then on.
bool DevicePackets::carry(const Plan& plan) {
  const Call& call = plan.call();
  const size_t bytes = call.count * size_of(call.type);
  if (buffers_.empty() || flag_ == UINT32_MAX || bytes == 0 || bytes > PacketBuffer::most_bytes) return false;
  return !order(plan.schedule()).empty();
}

const std::vector<Rank>& DevicePackets::order(const schedule::Schedule& schedule) {
  const auto known = orders_.find(&schedule);
  return known != orders_.end() ? known->second : orders_.emplace(&schedule, exchange_order(schedule)).first->second;
}

PacketBuffers* DevicePackets::first() { return std::exchange(cleared_, true) ? nullptr : buffers_[static_cast<size_t>(rank_)]; }

PacketArgs DevicePackets::next(const Plan& plan, const Buffers& buffers, uint64_t word) {
  const Call& call = plan.call();
  const std::vector<Rank>& order = this->order(plan.schedule());
  PacketArgs args{};
  args.input = buffers.input, args.output = buffers.output;
  args.own = buffers_[static_cast<size_t>(rank_)];
  std::transform(order.begin(), order.end(), args.parts, [this](Rank rank) { return buffers_[static_cast<size_t>(rank)]; });
  args.ranks = static_cast<uint32_t>(order.size());
  args.flag = ++flag_;
  args.count = call.count;
  args.scalar = buffers.scalar;
  if (call.op == ReduceOp::avg)
    args.scalar = is_integer(call.type) ? order.size() : kernels::avg_scalar_bits(call.type, plan.schedule().ranks);
  args.word = mix(word ^ salt_);
  return args;
}

}  // namespace gyre::engine
