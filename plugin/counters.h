// What a connection has done, for those who look from outside. Written by the one thread that has its turn, read by any.
#pragma once
#include <atomic>
#include <cstdint>

namespace gyre::plugin {

class Counter {
 public:
  void add(uint64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct Counters {
  Counter bytes, messages;  ///< of what is done
  Counter retries;          ///< calls that found no room
  Counter waited_ns;        ///< from post to done, summed over requests; counted where GYRE_STATS is set
  Counter errors;
};

}  // namespace gyre::plugin
