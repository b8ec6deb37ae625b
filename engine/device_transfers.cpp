#include "engine/device_transfers.h"

#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <exception>
#include <new>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "engine/remains.h"
#include "kernels/mem.h"
#include "kernels/table.h"

namespace gyre::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned most_copy_blocks = 16;  // as those of messages that go by the host (device_queue.cpp)
constexpr size_t apart = 256;              // messages in pinned memory, as cudaMalloc's

size_t padded_bytes(const Transfer& transfer) { return (transfer.count * size_of(transfer.type) + apart - 1) / apart * apart; }

// What is thrown for want of memory, or of a thread, is an error as any other: other ranks must hear of it.
template <class Call>
Status without_throwing(Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::exception& thrown) {
    return Error{Code::system, fmt::format("sends and receives on a GPU: {}", thrown.what())};
  }
}

}  // namespace

DeviceTransfers::~DeviceTransfers() {
  if (stream_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    if (!waiting_.empty()) waiting_.front().by->abort("the communicator has ended");
  }
  changed_.notify_all();
  thread_.join();
  let_go();
  leave_remains();
}

void DeviceTransfers::leave_remains() {
  struct Remains {
    kernels::GpuMemory flags;
    std::vector<kernels::GpuMemory> bounces;
    std::unique_ptr<kernels::Stream> stream;  // ends first

    Result<bool> done() const { return stream->done(); }
  };
  leave(std::make_unique<Remains>(Remains{std::move(flags_memory_), std::move(bounces_), std::move(stream_)}),
        "sends and receives on a GPU");
}

bool DeviceTransfers::make_room(std::span<const Transfer> transfers) {
  size_t bytes = 0;
  for (const Transfer& transfer : transfers) bytes += padded_bytes(transfer);
  const Status made = without_throwing([&]() -> Status {
    GYRE_TRY(open());
    return take_bounce(bytes);
  });
  if (!made) log::info("a group of {} sends and receives has no room on a GPU's stream: {}", transfers.size(), made.error().what);
  return static_cast<bool>(made);
}

// A stream is not taken before: CUDA has few hardware queues, and creating one, or pinned memory, waits for no closed gate (measured:
// perf/results/2026-11-26-h200). Others see what there is once nothing more can go wrong.
Status DeviceTransfers::open() {
  if (stream_ != nullptr) return {};
  auto memory = GYRE_TRY(gpu_.allocate_pinned(sizeof(Flags)));
  auto stream = GYRE_TRY(gpu_.open_stream());
  auto* const flags = new (memory.get()) Flags{};
  thread_ = std::thread([this] { serve(); });
  stream_ = std::move(stream);
  flags_memory_ = std::move(memory);
  const std::lock_guard lock(mutex_);
  flags_ = flags;
  if (let_go_) kernels::store_release(&flags_->gate, kernels::all_tickets);
  return {};
}

// One after the other, groups use the same memory. A power of two, since a process keeps it for the next that takes as much.
Status DeviceTransfers::take_bounce(size_t bytes) {
  if (bytes <= bounce_bytes_) return {};
  const size_t wished = std::bit_ceil(bytes);
  const bool unused = idle();
  const size_t held = unused ? 0 : held_bytes_;
  if (wished > most_bytes - held) return Error{Code::system, fmt::format("{} bytes are too much beside {}", wished, held)};
  auto memory = GYRE_TRY(gpu_.allocate_pinned(wished));
  if (unused) bounces_.clear();
  bounces_.push_back(std::move(memory));
  bounce_bytes_ = wished;
  held_bytes_ = held + wished;
  return {};
}

Status DeviceTransfers::give(Communicator& by, std::span<const Transfer> transfers, void* user) {
  const Status given = without_throwing([&] { return begin(by, transfers, user); });
  if (given) return {};
  by.bootstrap().fail(given.error());  // other ranks wait for what will never come, and some of it may be on the stream
  const std::lock_guard lock(mutex_);
  fail(given.error());
  return *failure_;
}

// The thread has it before the stream, which may be full until what was given before has been carried.
Status DeviceTransfers::begin(Communicator& by, std::span<const Transfer> transfers, void* user) {
  std::byte* at = bounces_.empty() ? nullptr : bounces_.back().get();
  std::vector<Copy> out, in;
  std::vector<Transfer> on_host(transfers.begin(), transfers.end());
  for (Transfer& transfer : on_host) {
    const size_t own = transfer.count * size_of(transfer.type);
    if (own == 0) continue;
    if (transfer.kind == Transfer::Kind::send)
      out.push_back({transfer.data, at, own});
    else
      in.push_back({at, transfer.data, own});
    transfer.data = at;
    at += padded_bytes(transfer);
  }
  const uint64_t ticket = GYRE_TRY(announce(by, std::move(on_host)));
  GYRE_TRY(stream_->follow(user));
  const Status given = give_work(out, in, ticket);
  // It may be carried all the same, which opens the gate: not as far as who lets streams go.
  if (!given) std::ignore = stream_->wait(&flags().gate, kernels::all_tickets);
  const Status led = stream_->lead(user);  // also behind half of it
  return given ? led : given;
}

Result<uint64_t> DeviceTransfers::announce(Communicator& by, std::vector<Transfer> transfers) {
  const std::lock_guard lock(mutex_);
  if (failure_) return *failure_;
  waiting_.push_back({&by, given_ + 1, std::move(transfers)});
  changed_.notify_all();
  return ++given_;
}

Status DeviceTransfers::give_work(const std::vector<Copy>& out, const std::vector<Copy>& in, uint64_t ticket) {
  GYRE_TRY(copy(out));
  GYRE_TRY(stream_->raise(&flags().ready, ticket));
  GYRE_TRY(stream_->wait(&flags().gate, ticket));
  GYRE_TRY(copy(in));
  return stream_->raise(&flags().ended, ticket);
}

Status DeviceTransfers::copy(const std::vector<Copy>& copies) {
  const auto kernel = kernels::step_kernel_of(DataType::uint8, ReduceOp::sum, kernels::Shape::one_to_one);
  for (const Copy& each : copies) {
    kernels::StepArgs args{};
    args.sources[0] = each.from;
    args.destinations[0] = each.to;
    args.count = each.bytes;
    GYRE_TRY(stream_->launch(kernel, args, kernels::step_blocks(each.bytes, most_copy_blocks)));
  }
  return {};
}

bool DeviceTransfers::carried() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty();
}

bool DeviceTransfers::idle() const {
  const std::lock_guard lock(mutex_);
  return !failure_ && waiting_.empty() && (flags_ == nullptr || kernels::load_acquire(&flags_->ended) == given_);
}

void DeviceTransfers::let_go() {
  const std::lock_guard lock(mutex_);
  let_go_ = true;
  if (flags_ != nullptr) kernels::store_release(&flags_->gate, kernels::all_tickets);
}

// The gate stays closed for what follows.
void DeviceTransfers::fail(const Error& error) {
  if (failure_) return;
  failure_ = error;
  failed_.store(true, std::memory_order_release);
}

void DeviceTransfers::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return over_ || !waiting_.empty(); });
    if (over_) return;
    const Given& next = waiting_.front();
    lock.unlock();
    const Status carried = without_throwing([&] { return carry(next); });
    if (!carried) next.by->fail(carried.error());
    lock.lock();
    if (!carried) {
      fail(carried.error());
      waiting_.clear();
      return;
    }
    if (!let_go_) kernels::store_release(&flags_->gate, next.ticket);
    waiting_.pop_front();
  }
}

// What is late may be as late as the program likes: the GPU's own doing has no limit.
Status DeviceTransfers::carry(const Given& given) const {
  constexpr std::chrono::microseconds awake{200}, nap{50};
  const auto begin = Clock::now();
  while (kernels::load_acquire(&flags_->ready) < given.ticket) {
    GYRE_TRY(given.by->lives());
    if (Clock::now() - begin < awake)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(nap);
  }
  return given.by->exchange(given.transfers);
}

}  // namespace gyre::engine
