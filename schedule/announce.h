// The order in which posted receives are announced: ahead of their steps, so that data flows while earlier steps run, but each at the
// earliest when nothing before it still needs its memory. One rule for the run and for its proof.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/run.h"

namespace gyre::schedule {

/// Only a plain receive of one chunk has its place in user memory; what is to be reduced arrives in a slot.
inline bool lands(const Step& step) { return step.from.count == 1 && !step.reduces() && step.dst.count == 1; }

/// [step]: the last earlier step of the program that touches what a receive that lands there writes; -1: none, or it does not land.
std::vector<int64_t> last_accesses(const Program&, const Cells&);

class Announcer {
 public:
  /// Starts a run of the program. Allocates only when the program is another than before.
  void bind(const Program& program, const Cells& cells, uint32_t slices, uint32_t rounds) {
    if (&program != program_ || cells != cells_) last_access_ = last_accesses(program, cells);
    program_ = &program;
    cells_ = cells;
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

  const Program* program_ = nullptr;
  Cells cells_;
  uint32_t slices_ = 1;
  uint32_t rounds_ = 1;
  Position next_;                     // the first step whose messages are not all announced
  uint32_t next_peer_ = 0;            // and how many of them are
  std::vector<int64_t> last_access_;  // [step]; -1: none
};

}  // namespace gyre::schedule
