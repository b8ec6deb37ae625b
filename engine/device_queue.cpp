#include "engine/device_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "kernels/mem.h"
#include "kernels/ordered.h"
#include "kernels/reduce_host.h"

namespace gyre::engine {
namespace {

using kernels::StayItem;

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

DeviceQueue::DeviceQueue(kernels::Gpu& gpu, bool fast)
    : gpu_(gpu), blocks_(std::min(most_blocks, gpu.resident_blocks())), step_blocks_(fast ? ~0U : blocks_) {}

Result<std::unique_ptr<DeviceQueue>> DeviceQueue::open(kernels::Gpu& gpu, bool fast) {
  std::unique_ptr<DeviceQueue> queue(new DeviceQueue(gpu, fast));
  queue->memory_ = GYRE_TRY(gpu.allocate_pinned(sizeof(Shared)));
  queue->shared_ = new (queue->memory_.get()) Shared{};
  for (StayItem& item : queue->shared_->items) item.ticket = kernels::all_tickets;  // none
  queue->stream_ = GYRE_TRY(gpu.open_stream());
  return queue;
}

DeviceQueue::~DeviceQueue() {
  if (stream_ == nullptr) return;
  let_go();
  stream_.reset();  // before the memory that it uses
}

Status DeviceQueue::refuse(const Call& call, void* user) {
  if (reduces(call.collective) && !gpu_.computes(call.type))
    return Error{Code::invalid_usage, fmt::format("{}: this GPU has no arithmetic of {}", name(call.collective), name(call.type))};
  return stream_->refuse(user);
}

HandOff DeviceQueue::fitting(const DeviceSteps& steps) const {
  if (!gpu_.streams_wait()) return HandOff::stays;
  size_t operations = 2 + 2 * steps.steps.size();
  for (const DeviceKernel& kernel : steps.kernels) operations += kernel.args.count != 0 ? 1 : 0;
  return operations <= most_operations ? HandOff::gates : HandOff::stays;
}

Result<Tickets> DeviceQueue::enqueue(const Call& call, const DeviceSteps& steps, HandOff hand_off, void* user) {
  const Tickets tickets{next_, next_ + steps.kernels.size(), hand_off};
  GYRE_TRY(stream_->follow(user));
  GYRE_TRY(hand_off == HandOff::gates ? wait_and_run(steps, tickets.first) : stay(stay_kernel_of(call, steps), tickets));
  GYRE_TRY(stream_->lead(user));
  next_ = tickets.end;
  return tickets;
}

Status DeviceQueue::wait_and_run(const DeviceSteps& steps, uint64_t first) {
  uint32_t k = 0;
  for (const DeviceStep& step : steps.steps) {
    const uint64_t end = first + step.kernels_end;
    GYRE_TRY(stream_->wait(&shared_->gate, end));
    for (; k < step.kernels_end; ++k) {
      const DeviceKernel& kernel = steps.kernels[k];
      if (kernel.args.count == 0) continue;
      GYRE_TRY(stream_->launch(kernel_of(kernel), kernel.args, kernels::step_blocks(bytes_moved(kernel), step_blocks_)));
    }
    GYRE_TRY(stream_->raise(&shared_->ended, end));
  }
  return {};
}

Status DeviceQueue::stay(kernels::StayKernel kernel, const Tickets& tickets) {
  return stream_->launch(kernel, {shared_->items, ring, &shared_->gate, shared_->block_ended, tickets.first, tickets.end}, blocks_);
}

bool DeviceQueue::prepare(const Call& call, const Tickets& tickets, const DeviceKernel& kernel, uint64_t ticket) {
  if (tickets.hand_off == HandOff::gates) return true;
  if (ticket - ended(tickets) >= ring) return false;
  shared_->items[ticket % ring] = item_of(call, kernel, ticket);
  return true;
}

void DeviceQueue::open(uint64_t ticket) { kernels::store_release(&shared_->gate, ticket); }

uint64_t DeviceQueue::ended(const Tickets& tickets) const {
  uint64_t ended = tickets.end;
  if (tickets.hand_off == HandOff::gates) {
    ended = kernels::load_acquire(&shared_->ended);
  } else {
    for (unsigned block = 0; block < blocks_; ++block) ended = std::min(ended, kernels::load_acquire(&shared_->block_ended[block].value));
  }
  return std::clamp(ended, tickets.first, tickets.end);
}

// A kernel that stays does what it was told before, and then finds nothing more.
void DeviceQueue::let_go() { open(kernels::all_tickets); }

}  // namespace gyre::engine
