// Who may use a group's workers now. NCCL's Progress thread must never block, so it tries for a moment, and comes again where it fails; the
// Service thread, which calls rarely, waits. So that it is not starved by a thread that tries all the time, nobody gets a turn by trying
// while somebody waits; and so that many calls of it in a row do not starve the other, each gives way to one that has tried in vain.
#pragma once
#include <atomic>
#include <chrono>
#include <thread>

namespace gyre::plugin {

template <class Mutex>
class BasicTurn {
 public:
  void lock() {
    if (refused_.load(std::memory_order_relaxed)) give_way();
    waiting_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  bool try_lock() { return waiting_.load(std::memory_order_relaxed) == 0 && mutex_.try_lock(); }
  /// Keeps trying for some microseconds: most turns are that short, and who must come again is late.
  bool try_briefly() {
    const bool taken = try_lock() || try_again();
    if (refused_.load(std::memory_order_relaxed) == taken) refused_.store(!taken, std::memory_order_relaxed);
    return taken;
  }
  [[gnu::always_inline]] void unlock() { mutex_.unlock(); }

 private:
  [[gnu::noinline]] bool try_again() {
    for (int i = 0; i < 500; ++i) {
      if (waiting_.load(std::memory_order_relaxed) > 0) return false;
      rest();
      if (try_lock()) return true;
    }
    return false;
  }
  // Not for long: who was refused may never come again.
  [[gnu::noinline]] void give_way() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
    while (refused_.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    refused_.store(false, std::memory_order_relaxed);
  }
  static void rest() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  Mutex mutex_;
  std::atomic<int> waiting_{0};
  std::atomic<bool> refused_{false};  // who tried for a moment last
};

/// A mutex for turns that are taken and given back with every call: inline where std::mutex calls the C library, and as cheap as that where
/// somebody waits.
class Flag {
 public:
  void lock() {
    waiting_.fetch_add(1);
    while (held_.exchange(true)) held_.wait(true);
    waiting_.fetch_sub(1);
  }
  bool try_lock() { return !held_.load(std::memory_order_relaxed) && !held_.exchange(true); }
  // Who is not seen waiting here has yet to look at held_.
  [[gnu::always_inline]] void unlock() {
    held_.store(false);
    if (waiting_.load() > 0) held_.notify_one();
  }

 private:
  std::atomic<bool> held_{false};
  std::atomic<int> waiting_{0};
};
using Turn = BasicTurn<Flag>;

}  // namespace gyre::plugin
