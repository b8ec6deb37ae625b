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
  std::atomic<int> turns{0};
  std::atomic<bool> over{false};
  std::jthread hog([&] {
    while (!over) {
      const std::lock_guard lock(turn);
      ++turns;
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(50);  // longer than is tried
      while (!over && std::chrono::steady_clock::now() < until) continue;
    }
  });
  while (turns == 0) std::this_thread::yield();
  int taken = 0, passed_over = 0;  // by a hog that took another turn while this tried in vain
  while (taken < 200 && passed_over < 200) {
    const int before = turns;
    if (turn.try_briefly()) {
      ++taken;
      turn.unlock();
    } else if (turns != before) {
      ++passed_over;
    }
  }
  over = true;
  CHECK(taken == 200);
}
