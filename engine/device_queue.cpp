#include "engine/device_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <thread>
#include <tuple>
#include <utility>

#include "engine/stream_operations.h"
#include "kernels/mem.h"
#include "kernels/ordered.h"
#include "kernels/reduce_host.h"

namespace gyre::engine {
namespace {

using kernels::StayItem;

/// Blocks of a step kernel at most, by the path of messages. One that waits for nothing but the GPU's own memory has blocks for all that it
/// moves. What comes over links or a network is no faster for more blocks than keep these busy, which only take the GPU from the program's
/// own kernels. An estimate, for copies: of 32 KiB under way in each, 28 fill 450 GB/s at 2 us, and 16 leave much room over a network's
/// 50 GB/s.
constexpr std::array<unsigned, 3> most_step_blocks{~0U, 32, 16};

bool alone(const DeviceKernel& kernel) {
  return !kernel.converts && (kernel.shape == kernels::Shape::one_to_one || kernel.shape == kernels::Shape::one_to_two);
}

size_t bytes_moved(const DeviceKernel& kernel) { return kernel.args.count * size_of(kernel.type); }

kernels::StepKernel kernel_of(const DeviceKernel& kernel) {
  return kernel.converts ? kernels::ordered_kernel_of(kernel.type, kernel.op)
                         : kernels::step_kernel_of(kernel.type, kernel.op, kernel.shape);
}

kernels::StayKernel stay_kernel_of(const Call& call, const DeviceSteps& steps) {
  return steps.converts ? kernels::ordered_stay_kernel_of(steps.type, call.op) : kernels::stay_kernel_of(steps.type, call.op);
}

/// The kernel that stays is of the collective's operation; what is another's, a sum without an own part, it does with a neutral scalar.
StayItem item_of(const Call& call, const DeviceKernel& kernel, uint64_t ticket) {
  StayItem item{ticket, StayItem::What::reduce, kernel.args};
  if (alone(kernel)) item.what = kernel.op == ReduceOp::sum ? StayItem::What::copy : StayItem::What::multiply;
  if (kernel.converts) return item;
  if (item.what == StayItem::What::copy) item.step.count = kernel.args.count * size_of(kernel.type) / size_of(call.type);
  if (kernel.op != call.op) item.step.scalar = kernels::avg_scalar_bits(call.type, 1);
  return item;
}

}  // namespace

DeviceQueue::DeviceQueue(kernels::Gpu& gpu, MessagePath path)
    : gpu_(gpu), blocks_(std::min(most_blocks, gpu.resident_blocks())), step_blocks_(most_step_blocks.at(static_cast<size_t>(path))) {}

Result<std::unique_ptr<DeviceQueue>> DeviceQueue::open(kernels::Gpu& gpu, MessagePath path) {
  std::unique_ptr<DeviceQueue> queue(new DeviceQueue(gpu, path));
  queue->memory_ = GYRE_TRY(gpu.allocate_pinned(sizeof(Shared)));
  queue->shared_ = new (queue->memory_.get()) Shared{};
  queue->shared_->lane.close_items();
  queue->replays_ = GYRE_TRY(DeviceReplays::open(gpu, queue->blocks_));
  queue->stream_ = GYRE_TRY(gpu.open_stream());
  return queue;
}

DeviceQueue::~DeviceQueue() {
  if (stream_ == nullptr) return;
  let_go();
  for (auto left = done(); left && !*left; left = done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stream_.reset();  // before the memory that it uses
}

Status DeviceQueue::refuse(const Call& call) const {
  if (reduces(call.collective) && !gpu_.computes(call.type))
    return Error{Code::invalid_usage, fmt::format("{}: this GPU has no arithmetic of {}", name(call.collective), name(call.type))};
  return {};
}

HandOff DeviceQueue::fitting(const DeviceSteps& steps) const {
  return gpu_.streams_wait() && stream_operations(steps) <= most_stream_operations ? HandOff::gates : HandOff::stays;
}

Tickets DeviceQueue::reserve(size_t count, HandOff hand_off) {
  const uint64_t first = std::exchange(next_, next_ + count);
  return {first, next_, hand_off, false};
}

template <class Give>
Status DeviceQueue::between(void* user, const Give& give) {
  GYRE_TRY(stream_->follow(user));
  const Status given = give();
  const Status led = stream_->lead(user);  // also behind half of it, which touches what the user may have back after it
  return given ? led : given;
}

Status DeviceQueue::give(const Call& call, const DeviceSteps& steps, const Tickets& tickets, void* user, bool announced) {
  announced = announced && !steps.kernels.empty();  // more that wait for nothing could be announced than the door has room for
  return between(user, [&] {
    Status given = give_kernels(call, steps, tickets, announced);
    // The gate may be open for the half that the stream has, which then ends. For all tickets only who lets streams go opens it.
    if (!given && tickets.hand_off != HandOff::stays) std::ignore = stream_->wait(&shared_->lane.gate, kernels::all_tickets);
    return given;
  });
}

Status DeviceQueue::give(const Call& call, kernels::PacketArgs args, const Tickets& tickets, void* user, bool announced) {
  args.door = &shared_->packets;
  args.ticket = tickets.first;
  args.ended = shared_->lane.block_ended;
  args.ended_flags = blocks_;  // as a kernel that stays has blocks, whose flags these are, too
  const unsigned blocks = kernels::packet_blocks(call.count * size_of(call.type), blocks_);
  return between(user, [&]() -> Status {
    if (announced) GYRE_TRY(announce());
    return stream_->launch(kernels::packet_kernel_of(call.type, call.op), args, blocks);
  });
}

Status DeviceQueue::clear(kernels::PacketBuffers* own) {
  kernels::PacketArgs args{};
  args.own = own;
  return stream_->launch(kernels::packet_kernel_of(DataType::uint8, ReduceOp::sum), args, blocks_);
}

Status DeviceQueue::give_kernels(const Call& call, const DeviceSteps& steps, const Tickets& tickets, bool announced) {
  if (tickets.hand_off == HandOff::stays) return stay(stay_kernel_of(call, steps), tickets, announced);
  if (announced) GYRE_TRY(announce());
  return wait_and_run(steps, tickets.first);
}

// Each block of one that has a list reads it from the host's memory: no more than run at a time.
unsigned DeviceQueue::most_blocks_of(const DeviceKernel& kernel) const {
  return kernel.args.list != nullptr ? std::min(step_blocks_, 2 * gpu_.resident_blocks()) : step_blocks_;
}

Status DeviceQueue::wait_and_run(const DeviceSteps& steps, uint64_t first) {
  uint32_t k = 0;
  for (const DeviceStep& step : steps.steps) {
    const uint64_t end = first + step.kernels_end;
    GYRE_TRY(stream_->wait(&shared_->lane.gate, end));
    for (; k < step.kernels_end; ++k) {
      const DeviceKernel& kernel = steps.kernels[k];
      if (kernel.args.count == 0) continue;
      GYRE_TRY(stream_->launch(kernel_of(kernel), kernel.args, kernels::step_blocks(bytes_moved(kernel), most_blocks_of(kernel))));
    }
    GYRE_TRY(stream_->raise(&shared_->ended, end));
  }
  return {};
}

Status DeviceQueue::stay(kernels::StayKernel kernel, const Tickets& tickets, bool announced) {
  StayLane& lane = shared_->lane;
  return stream_->launch(
      kernel,
      {lane.items, StayLane::ring, &lane.gate, lane.block_ended, tickets.first, tickets.end, announced ? &replays_->door() : nullptr},
      blocks_);
}

Status DeviceQueue::capture(const Call& call, const DeviceSteps& steps, const DeviceReplays::Place& place, std::shared_ptr<void> holder,
                            void* user) {
  StayLane& lane = replays_->lane();
  return stream_->capture(
      user, stay_kernel_of(call, steps),
      {lane.items, StayLane::ring, &lane.gate, lane.block_ended, 0, steps.kernels.size(), &replays_->door(), place.slot, place.id}, blocks_,
      std::move(holder));
}

bool DeviceQueue::prepare(const Call& call, const Tickets& tickets, const DeviceKernel& kernel, uint64_t ticket) {
  if (tickets.hand_off != HandOff::stays) return true;
  if (ticket - ended(tickets) >= StayLane::ring) return false;
  lane(tickets).items[ticket % StayLane::ring] = item_of(call, kernel, ticket);
  return true;
}

void DeviceQueue::open(const Tickets& tickets, uint64_t ticket) { kernels::store_release(&lane(tickets).gate, ticket); }

void DeviceQueue::hold() {
  if (let_go_) return;
  kernels::store_release(&shared_->lane.gate, 0);    // of no ticket: they begin at 1
  kernels::store_release(&shared_->list.ticket, 0);  // nor of it
  kernels::store_release(&replays_->lane().gate, 0);
  kernels::store_release(&shared_->packets.state, kernels::PacketDoor::held);
}

uint64_t DeviceQueue::ended(const Tickets& tickets) const {
  const bool by_flag = tickets.hand_off == HandOff::gates || tickets.hand_off == HandOff::mapped;
  const uint64_t ended = by_flag ? kernels::load_acquire(&shared_->ended) : lane(tickets).ended(blocks_);
  return std::clamp(ended, tickets.first, tickets.end);
}

bool DeviceQueue::begun(const Tickets& tickets) const { return kernels::load_acquire(&shared_->packets.begun) >= tickets.end; }

// A kernel that stays does what it was told before, and then finds nothing more. One with a list finds it another's.
void DeviceQueue::let_go(kernels::ReplayDoor::State state) {
  kernels::store_release(&shared_->list.ticket, 0);
  open({}, kernels::all_tickets);
  kernels::store_release(&shared_->packets.state, kernels::PacketDoor::let_go);
  if (let_go_.exchange(true)) return;
  replays_->close(state);
}

}  // namespace gyre::engine
