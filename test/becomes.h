// For what is true after some time.
#pragma once
#include <chrono>
#include <thread>

namespace gyre::test {

/// Polls until it is true. The limit is for tests that fail.
template <class Condition>
bool becomes(Condition&& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace gyre::test
