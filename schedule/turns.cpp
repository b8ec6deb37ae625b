#include "schedule/turns.h"

#include <fmt/format.h>

#include "schedule/wiring.h"

namespace gyre::schedule {
namespace {

/// The Machine (run.h) of all ranks together that only counts messages.
class Counter {
 public:
  Counter(const Schedule& schedule, const Wiring& wiring, uint32_t credits, uint32_t slices)
      : schedule_(schedule),
        wiring_(wiring),
        credits_(credits),
        slices_(slices),
        queues_(wiring.links().size()),
        cursors_(schedule.programs.size()) {}

  /// Every program runs a step, if it can. False: none could.
  bool sweep(Rank noted, std::vector<Turn>& turns) {
    bool any = false;
    for (size_t p = 0; p < schedule_.programs.size(); ++p) {
      if (ended(p)) continue;
      program_ = &schedule_.programs[p];
      const Cursor now = cursors_[p];
      if (advance(*this, schedule_, program_->steps[now.step]).wait != Wait::nothing) continue;
      any = true;
      if (program_->rank == noted) turns.push_back({program_->channel, program_->strand, now});
      cursors_[p].next(slices_);
    }
    return any;
  }
  bool ended(size_t p) const { return cursors_[p].step == schedule_.programs[p].steps.size(); }

  // For advance(), of the program that runs.
  bool arrived(Rank peer) { return from(peer).sent > from(peer).received; }
  bool credit(Rank peer) { return to(peer).sent - to(peer).received < credits_; }
  bool overwritable(const Chunks&) const { return true; }
  void take(Rank peer) { ++from(peer).received; }
  void take(const Chunks&) const {}
  void put(Rank peer) { ++to(peer).sent; }
  void put(const Chunks&) const {}
  void finish(const Step&) const {}

 private:
  struct Queue {
    uint32_t sent = 0, received = 0;
  };
  Queue& from(Rank peer) { return queues_[wiring_.link(program_->channel, peer, program_->rank)]; }
  Queue& to(Rank peer) { return queues_[wiring_.link(program_->channel, program_->rank, peer)]; }

  const Schedule& schedule_;
  const Wiring& wiring_;
  uint32_t credits_, slices_;
  std::vector<Queue> queues_;    // [link]
  std::vector<Cursor> cursors_;  // [program]
  const Program* program_ = nullptr;
};

}  // namespace

Result<std::vector<Turn>> turns(const Schedule& schedule, Rank rank, uint32_t credits, uint32_t slices) {
  const Wiring wiring(schedule);
  if (!wiring.malformed().empty()) return Error{Code::internal, wiring.malformed()};
  Counter counter(schedule, wiring, credits, slices);
  std::vector<Turn> own;
  while (counter.sweep(rank, own)) {
  }
  for (size_t p = 0; p < schedule.programs.size(); ++p) {
    if (counter.ended(p)) continue;
    return Error{Code::internal,
                 fmt::format("schedule {} of {}: {} gets stuck when ranks run one step at a time, with {} credits and {} slices",
                             schedule.family, name(schedule.collective), where(schedule, schedule.programs[p], 0), credits, slices)};
  }
  return own;
}

}  // namespace gyre::schedule
