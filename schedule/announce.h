// The order in which posted receives are announced: ahead of their steps, so that data flows while earlier steps run, but each at the
// earliest when nothing before it still needs its memory. One rule for the run and for its proof.
#pragma once
#include <algorithm>
#include <vector>

#include "schedule/run.h"

namespace gyre::schedule {

/// Only a plain receive of one chunk has its place in user memory; what is to be reduced arrives in a slot.
inline bool lands(const Step& step) { return step.from.count == 1 && !step.reduces() && step.dst.count == 1; }

class Announcer {
 public:
  /// Starts a run of the program. Allocates only when the program is another than before.
  void bind(const Program& program, uint32_t slices, uint32_t rounds, bool in_place) {
    if (&program != program_ || in_place != in_place_) find_last_accesses(program, in_place);
    program_ = &program;
    in_place_ = in_place;
    slices_ = slices;
    rounds_ = rounds;
    next_ = {};
    next_peer_ = 0;
  }

  /// Announces all that can be while the program stands at `now`; true if anything was. Memory has:
  ///   bool posted(Rank peer)                                  messages from peer are to be announced
  ///   bool held(const Chunks& dst, const Position&)           a message under way is read from there
  ///   bool expect(Rank peer, const Step&, const Position&)    announces one; false: the connection has no room yet
  template <class Memory>
  bool run(Memory& memory, const Schedule& schedule, const Position& now) {
    bool any = false;
    while (next_.round < rounds_ && !program_->steps.empty()) {
      const Step& step = program_->steps[next_.cursor.step];
      const auto from = schedule.peers(step.from);
      for (; next_peer_ < from.size(); ++next_peer_) {
        if (!memory.posted(from[next_peer_])) continue;
        if (lands(step) && (!reached(now) || memory.held(step.dst, next_))) return any;
        if (!memory.expect(from[next_peer_], step, next_)) return any;
        any = true;
      }
      next_peer_ = 0;
      next_.next(slices_, program_->steps.size());
    }
    return any;
  }

 private:
  // The last earlier step that touches what the next one writes has run, for its slice.
  bool reached(const Position& now) const {
    const int64_t last = last_access_[next_.cursor.step];
    return last < 0 || Position{next_.round, {static_cast<uint32_t>(last), next_.cursor.slice}}.before(now);
  }
  void find_last_accesses(const Program& program, bool in_place) {
    const auto touches = [in_place](const Chunks& chunks, const Chunks& written) {
      if (!in_place && chunks.buffer != written.buffer) return false;
      for (uint32_t i = 0; i < chunks.count; ++i) {
        for (uint32_t j = 0; j < written.count; ++j) {
          if (chunks[i] == written[j]) return true;
        }
      }
      return false;
    };
    last_access_.assign(program.steps.size(), -1);
    for (size_t i = 0; i < program.steps.size(); ++i) {
      if (!lands(program.steps[i])) continue;
      const Chunks& written = program.steps[i].dst;
      for (size_t j = i; j-- > 0 && last_access_[i] < 0;) {
        if (touches(program.steps[j].src, written) || touches(program.steps[j].dst, written)) last_access_[i] = static_cast<int64_t>(j);
      }
    }
  }

  const Program* program_ = nullptr;
  bool in_place_ = false;
  uint32_t slices_ = 1;
  uint32_t rounds_ = 1;
  Position next_;                     // the first step whose messages are not all announced
  uint32_t next_peer_ = 0;            // and how many of them are
  std::vector<int64_t> last_access_;  // [step]; -1: none
};

}  // namespace gyre::schedule
