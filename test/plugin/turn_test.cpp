// Who waits for a turn gets it before those who only try, and gives way to them.
#include "plugin/turn.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include "test/catch.h"

using namespace gyre::plugin;

namespace {

// Free, and in lock() it does what the test wants done meanwhile.
struct WatchedMutex {
  static inline std::function<void()> while_waiting;
  void lock() { while_waiting(); }
  bool try_lock() { return true; }
  void unlock() {}
};

}  // namespace

TEST_CASE("turn: nobody gets one by trying while somebody waits") {
  BasicTurn<WatchedMutex> turn;
  bool taken = true;
  WatchedMutex::while_waiting = [&] { taken = turn.try_lock(); };
  CHECK(turn.try_lock());
  turn.unlock();
  turn.lock();
  CHECK_FALSE(taken);
  turn.unlock();
  CHECK(turn.try_lock());
}

TEST_CASE("turn: of threads that try and threads that wait, one has it at a time, and all get it") {
  Turn turn;
  int uses = 0;  // by who has the turn
  constexpr int each = 2000;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < each; ++i) {
          const std::lock_guard lock(turn);
          ++uses;
        }
      });
      threads.emplace_back([&] {
        for (int i = 0; i < each;) {
          const std::unique_lock lock(turn, std::try_to_lock);
          if (!lock) continue;
          ++uses;
          ++i;
        }
      });
    }
  }
  CHECK(uses == 4 * each);
}

TEST_CASE("turn: a thread that takes one after the other does not starve one that tries") {
  Turn turn;
  std::atomic<bool> begun{false}, over{false};
  std::jthread hog([&] {
    for (int i = 0; i < 20000; ++i) {  // a second, unless the other is ready
      const std::lock_guard lock(turn);
      begun = true;
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(50);  // longer than is tried
      while (!over && std::chrono::steady_clock::now() < until) continue;
    }
    over = true;
  });
  while (!begun) std::this_thread::yield();
  int taken = 0;
  while (taken < 200 && !over) {
    if (!turn.try_briefly()) continue;
    ++taken;
    turn.unlock();
  }
  over = true;
  CHECK(taken == 200);
}
