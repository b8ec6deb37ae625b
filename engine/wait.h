// How a rank waits for its peers. It polls; after a while it gives its processor away between polls, at once where ranks share
// processors. No system call while messages keep coming.
#pragma once
#include <sched.h>

#include <chrono>
#include <cstdint>

namespace gyre::engine {

inline void relax_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

class Waiter {
 public:
  /// `crowded`: the host has more ranks than processors. `by_kernel`: a poll is a system call.
  explicit Waiter(bool crowded, bool by_kernel = false) : spins_(crowded ? (by_kernel ? crowded_calls : crowded_spins) : free_spins) {}

  /// Something moved: the next wait starts afresh.
  void reset() { idle_ = 0; }
  /// Lets a moment pass. True now and then: time to look at what a waiting rank should look at rarely.
  bool pause() {
    if (++idle_ <= spins_) {
      relax_processor();
      return false;
    }
    sched_yield();
    return due();
  }
  /// The same of one that does not wait but does something else before it polls again.
  bool pass() { return ++idle_ > spins_ && due(); }
  /// How long nothing has moved, to the precision of pause()'s true.
  std::chrono::steady_clock::duration waited() const { return waited_; }

 private:
  bool due() {
    if ((idle_ - spins_) % look_every != 0) return false;
    const auto now = std::chrono::steady_clock::now();
    if (idle_ - spins_ == look_every) since_ = now;
    waited_ = now - since_;
    return true;
  }

  // About 10 us of polling, the cost of a few switches of processes: should a peer wait for this processor after all, it gets it soon.
  // With more ranks than processors whoever polls is in the way.
  static constexpr uint64_t free_spins = 400;
  static constexpr uint64_t crowded_spins = 20;
  static constexpr uint64_t crowded_calls = 1;  // which take as long as those spins
  static constexpr uint64_t look_every = 64;

  uint64_t spins_;
  uint64_t idle_ = 0;
  std::chrono::steady_clock::time_point since_;
  std::chrono::steady_clock::duration waited_{};
};

}  // namespace gyre::engine
