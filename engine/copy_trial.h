// By which way the bytes of ranks of a host are with each other soonest. It depends on how far their processors are apart, which the system
// does not say in a virtual machine, and differs by machine up to ten times (perf/results/2026-11-23-slots); so it is tried when
// they have met: each rank writes some bytes for the next one, through its caches and past them, and takes the time until the next one has
// them. What is found is of that moment: ranks that are moved later, or were busy with other
// calls, only lose time.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/types.h"
#include "transport/board.h"

namespace gyre::engine {

class CopyTrial {
 public:
  explicit CopyTrial(Rank rank) : rank_(rank) {}

  /// What a message to the next rank takes at least, in seconds.
  struct Times {
    double in_caches = 0, past_caches = 0;
  };

  /// Once for a board before its first call, by all its ranks at about the same time, each with a processor of its own; until all have
  /// returned the board's slots are the trial's. Takes less than 1 ms, and never much longer than twice the patience. Nothing: a neighbour
  /// did not come in time.
  std::optional<Times> run(const transport::Board&, std::chrono::microseconds patience);
  /// Whether, by what all ranks found, messages are there sooner through the caches than past them, as where processors share one.
  static bool favours_caches(std::span<const Times> by_rank);

 private:
  struct Area;
  using Clock = std::chrono::steady_clock;

  std::optional<Times> write(Area&, Clock::time_point end);
  void read(Area&, Clock::time_point end);

  Rank rank_;
  std::vector<std::byte> own_;  // what is written; what was read
};

}  // namespace gyre::engine
