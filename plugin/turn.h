// Who may use a group's workers now. NCCL's Progress thread must never block, so it tries for a moment, and comes again where it fails; the
// Service thread, which calls rarely, waits. So that it is not starved by a thread that tries all the time, nobody gets a turn by trying
// while somebody waits.
#pragma once
#include <atomic>
#include <mutex>

namespace gyre::plugin {

template <class Mutex>
class BasicTurn {
 public:
  void lock() {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  bool try_lock() { return waiting_.load(std::memory_order_relaxed) == 0 && mutex_.try_lock(); }
  /// Keeps trying for some microseconds: most turns are that short, and who must come again is late.
  bool try_briefly() {
    for (int i = 0; i < 500; ++i) {
      if (try_lock()) return true;
      if (waiting_.load(std::memory_order_relaxed) > 0) return false;
      rest();
    }
    return false;
  }
  void unlock() { mutex_.unlock(); }

 private:
  static void rest() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  Mutex mutex_;
  std::atomic<int> waiting_{0};
};
using Turn = BasicTurn<std::mutex>;

}  // namespace gyre::plugin
