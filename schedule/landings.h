// What a strand knew at the earliest moment at which a receive that lands in user memory can have been announced: after the last earlier
// access of its own, and not before the receives before it (announce.h). Connections have more room in one run than in another, so a
// proof must not count on anything later. Private to order.cpp.
#pragma once
#include <algorithm>
#include <vector>

#include "schedule/announce.h"
#include "schedule/clocks.h"

namespace gyre::schedule {

class Landings {
 public:
  void bind(const Program& program, const Cells& cells) {
    after_ = last_accesses(program, cells);
    known_.resize(program.steps.size());
    needed_.assign(program.steps.size(), false);
    int64_t latest = -1;
    for (size_t i = 0; i < after_.size(); ++i) {
      if (!lands(program.steps[i])) continue;
      after_[i] = latest = std::max(latest, after_[i]);
      if (latest >= 0) needed_[static_cast<size_t>(latest)] = true;
    }
  }
  /// A step has run, after which the strand knows this.
  void ran(size_t step, const Clock& clock) {
    if (needed_[step]) known_[step] = clock;
  }
  /// Adds what is known when the receive of a later step is announced. Asked in the order of steps.
  void join_announced(size_t step, Clock& clock) {
    if (after_[step] < 0) return;
    const auto after = static_cast<size_t>(after_[step]);
    for (; dropped_ < after; ++dropped_) Clock().swap(known_[dropped_]);
    join(clock, known_[after]);
  }

 private:
  std::vector<int64_t> after_;  // [step]
  std::vector<char> needed_;    // [step]
  std::vector<Clock> known_;    // [step]
  size_t dropped_ = 0;
};

}  // namespace gyre::schedule
