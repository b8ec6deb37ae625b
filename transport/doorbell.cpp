#include "transport/doorbell.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace gyre::transport {
namespace {

// Ranks are processes, and map the word at different addresses: the futex is not a private one.
void futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* limit) {
  static_assert(sizeof word == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, limit, nullptr, 0);
}

timespec timespec_of(std::chrono::nanoseconds time) {
  return {static_cast<time_t>(time.count() / 1'000'000'000), static_cast<long>(time.count() % 1'000'000'000)};
}

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

void Ringer::wake(uint32_t word) const {
  const uint32_t whom = word & ~Bell::in_poll;
  if (whom != Bell::for_anyone && whom != own_) return;
  // Of several that ring at a time one makes the system call. Where the peer has changed its mind in between, it has looked since.
  if (!bell_->word.compare_exchange_strong(word, Bell::awake, std::memory_order_acq_rel)) return;
  (word & Bell::in_poll) != 0 ? pipe_->wake() : futex(bell_->word, FUTEX_WAKE, 1, nullptr);
}

Doorbell::Doorbell(Rank rank, int ranks, int near)
    : rank_(rank),
      near_(static_cast<uint32_t>(near)),
      peers_(static_cast<size_t>(ranks)),
      pipes_(static_cast<size_t>(ranks)),
      ringers_(static_cast<size_t>(ranks)) {}

Result<std::unique_ptr<Doorbell>> Doorbell::create(Rank rank, int ranks, int near, bool in_poll) {
  std::unique_ptr<Doorbell> made(new Doorbell(rank, ranks, near));
  made->own_ = GYRE_TRY(SharedMemory::create(sizeof(Bell)));
  if (in_poll && near > 0) made->pipe_ = GYRE_TRY(WakePipe::create());
  made->registered_ = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
  return made;
}

// The memory's, or the memory's/the pipe's.
std::string Doorbell::address() const { return pipe_ ? own_->address() + "/" + pipe_->address() : own_->address(); }

Status Doorbell::open(Rank peer, std::string_view address) {
  const auto place = static_cast<size_t>(peer);
  const size_t bar = address.find('/');
  auto memory = GYRE_TRY(SharedMemory::open(address.substr(0, bar)));
  if (memory->bytes() < sizeof(Bell)) return Error{Code::remote, fmt::format("shm: rank {}'s bell has {} bytes", peer, memory->bytes())};
  if (bar != std::string_view::npos) pipes_[place] = GYRE_TRY(WakePipe::open(address.substr(bar + 1)));
  ringers_[place] = Ringer(bell(*memory), rank_, pipes_[place] ? &*pipes_[place] : nullptr);
  peers_[place] = std::move(memory);
  return {};
}

void Doorbell::promise(Rank peer) {
  Bell& theirs = bell(*peers_[static_cast<size_t>(peer)]);
  if (registered_) theirs.fenced.fetch_add(1, std::memory_order_release);
  theirs.ringers.fetch_add(1, std::memory_order_release);
}

Doorbell::Rung Doorbell::rung() const {
  if (near_ == 0) return {true, true};
  const bool all = bell().ringers.load(std::memory_order_acquire) == near_;
  return {all, all && registered_ && bell().fenced.load(std::memory_order_acquire) == near_};
}

void Doorbell::arm(Rank whom) {
  if (near_ == 0) return;
  armed_ = whom < 0 ? Bell::for_anyone : Bell::for_rank + static_cast<uint32_t>(whom);
  if (pipe_) armed_ |= Bell::in_poll;
  bell().word.store(armed_, std::memory_order_seq_cst);
  if (registered_) membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void Doorbell::sleep(std::chrono::nanoseconds most) {
  const timespec limit = timespec_of(most);
  futex(bell().word, FUTEX_WAIT, armed_, &limit);
}

void Doorbell::sleep(std::chrono::nanoseconds most, std::vector<pollfd>& besides) {
  if (pipe_) besides.push_back({pipe_->fd(), POLLIN, 0});
  const timespec limit = timespec_of(most);
  ::ppoll(besides.data(), besides.size(), &limit, nullptr);
  // A byte can also come late, of a ring that ended an earlier sleep: that one ends this sleep for no reason.
  if (pipe_ && besides.back().revents != 0) pipe_->drain();
}

void Doorbell::disarm() { bell().word.store(Bell::awake, std::memory_order_relaxed); }

}  // namespace gyre::transport
