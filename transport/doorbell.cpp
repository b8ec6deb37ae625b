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

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

void Ringer::wake(uint32_t whom) const {
  if (whom != Bell::for_anyone && whom != own_) return;
  // Of several that ring at a time one makes the system call. Where the peer has changed its mind in between, it has looked since.
  if (bell_->word.compare_exchange_strong(whom, Bell::awake, std::memory_order_acq_rel)) futex(bell_->word, FUTEX_WAKE, 1, nullptr);
}

Doorbell::Doorbell(Rank rank, int ranks) : rank_(rank), peers_(static_cast<size_t>(ranks)), ringers_(static_cast<size_t>(ranks)) {}

Result<std::unique_ptr<Doorbell>> Doorbell::create(Rank rank, int ranks) {
  std::unique_ptr<Doorbell> made(new Doorbell(rank, ranks));
  made->own_ = GYRE_TRY(SharedMemory::create(sizeof(Bell)));
  made->registered_ = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
  return made;
}

Status Doorbell::open(Rank peer, std::string_view address) {
  auto memory = GYRE_TRY(SharedMemory::open(address));
  if (memory->bytes() < sizeof(Bell)) return Error{Code::remote, fmt::format("shm: rank {}'s bell has {} bytes", peer, memory->bytes())};
  ringers_[static_cast<size_t>(peer)] = Ringer(bell(*memory), rank_);
  peers_[static_cast<size_t>(peer)] = std::move(memory);
  return {};
}

void Doorbell::promise(Rank peer) {
  Bell& theirs = bell(*peers_[static_cast<size_t>(peer)]);
  if (registered_) theirs.fenced.fetch_add(1, std::memory_order_release);
  theirs.ringers.fetch_add(1, std::memory_order_release);
}

Doorbell::Rung Doorbell::rung() const {
  const auto peers = static_cast<uint32_t>(peers_.size() - 1);
  const bool all = bell().ringers.load(std::memory_order_acquire) == peers;
  return {all, all && registered_ && bell().fenced.load(std::memory_order_acquire) == peers};
}

void Doorbell::arm(Rank whom) {
  armed_ = whom < 0 ? Bell::for_anyone : Bell::for_rank + static_cast<uint32_t>(whom);
  bell().word.store(armed_, std::memory_order_seq_cst);
  if (registered_) membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void Doorbell::sleep(std::chrono::nanoseconds most) {
  const timespec limit{static_cast<time_t>(most.count() / 1'000'000'000), static_cast<long>(most.count() % 1'000'000'000)};
  futex(bell().word, FUTEX_WAIT, armed_, &limit);
}

void Doorbell::disarm() { bell().word.store(Bell::awake, std::memory_order_relaxed); }

}  // namespace gyre::transport
