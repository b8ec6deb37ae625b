// How a rank sleeps until another rank of its host has something for it. Each rank has a word in memory that all ranks of the host map: it
// says whether the rank sleeps, and for whom. Whoever has written what a peer may wait for (a line of the board, a message, a credit) looks
// at the peer's word, which nearly always says that nobody sleeps, and wakes it if need be.
//
//   sleeper:  word = whom      | membarrier | look again | futex wait while word == whom, at most for a while
//   ringer:   store the news   | (compiler) | load word: whom? word = 0, futex wake
//
// A rank that waits for descriptors besides, of a network, sleeps in poll(): its word says so, and whoever rings writes to its pipe.
//
// The processor may delay a store until after a later load, so that both could miss each other. A fence in the ringer would cost each
// message; instead the sleeper, who has time, has the kernel put one into all ranks' processors (membarrier). Where that can't be had a
// ring can be lost, and sleeps are short. It must not know: what is waited for, and for how long.
#pragma once
#include <poll.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "transport/shared_memory.h"
#include "transport/wake_pipe.h"

namespace gyre::transport {

/// What a rank has in the shared memory: a cache line that is rarely written, so that ringers have it in their caches.
struct alignas(64) Bell {
  static constexpr uint32_t awake = 0, for_anyone = 1, for_rank = 2;  ///< for_rank + r: for rank r alone
  static constexpr uint32_t in_poll = 1U << 31;                       ///< added to these
  std::atomic<uint32_t> word;
  std::atomic<uint32_t> ringers;  ///< ranks that ring whatever they do for this one
  std::atomic<uint32_t> fenced;   ///< those of them whose processes take part in membarriers
};

/// One rank's way to wake another. Does nothing where there is none.
class Ringer {
 public:
  Ringer() = default;
  /// `pipe`: of a peer that sleeps in poll(); must outlive this.
  Ringer(Bell& bell, Rank own, const WakePipe* pipe) : bell_(&bell), pipe_(pipe), own_(Bell::for_rank + static_cast<uint32_t>(own)) {}

  /// After the news was stored: wakes the peer, if it sleeps and waits for this rank.
  void ring() const {
    if (bell_ == nullptr) return;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const uint32_t word = bell_->word.load(std::memory_order_relaxed);
    if (word != Bell::awake) [[unlikely]]
      wake(word);
  }

 private:
  void wake(uint32_t word) const;

  Bell* bell_ = nullptr;
  const WakePipe* pipe_ = nullptr;
  uint32_t own_ = 0;
};

/// A rank's own bell, and its way to its peers'. Used by one thread.
class Doorbell {
 public:
  /// `near`: how many peers may ring. `in_poll`: this rank waits for descriptors besides.
  static Result<std::unique_ptr<Doorbell>> create(Rank rank, int ranks, int near, bool in_poll = false);
  std::string address() const;
  /// Maps a peer's bell.
  Status open(Rank peer, std::string_view address);
  /// For what wakes the peer; of a rank that is not opened: a ringer that does nothing.
  const Ringer& ringer(Rank peer) const { return ringers_[static_cast<size_t>(peer)]; }
  /// Wakes all that were opened and wait for this rank.
  void ring_all() const {
    for (const Ringer& ringer : ringers_) ringer.ring();
  }
  /// This rank rings from now on whenever the peer may wait for it.
  void promise(Rank peer);
  /// Whether all near peers have promised that; `sure`: and no ring is lost.
  struct Rung {
    bool by_all, sure;
  };
  Rung rung() const;

  /// From here on a ring ends sleep(); what came before must be looked for after this. `whom`: the rank whose rings count; -1: everybody's.
  void arm(Rank whom);
  /// Returns when a rank rings, has rung since arm(), or after so long; and for no reason.
  void sleep(std::chrono::nanoseconds most);
  /// The same in poll(), where what becomes ready of these ends it, too.
  void sleep(std::chrono::nanoseconds most, std::vector<pollfd>& besides);
  /// This rank is awake, and nobody need ring.
  void disarm();

 private:
  Doorbell(Rank rank, int ranks, int near);
  static Bell& bell(const SharedMemory& memory) { return *reinterpret_cast<Bell*>(memory.data()); }
  Bell& bell() const { return bell(*own_); }

  Rank rank_;
  uint32_t near_;
  std::unique_ptr<SharedMemory> own_;
  std::optional<WakePipe> pipe_;                      // where it sleeps in poll()
  std::vector<std::unique_ptr<SharedMemory>> peers_;  // by rank
  std::vector<std::optional<WakePipe>> pipes_;        // by rank: of those that do so
  std::vector<Ringer> ringers_;                       // by rank
  bool registered_ = false;                           // for membarriers
  uint32_t armed_ = Bell::awake;
};

}  // namespace gyre::transport
