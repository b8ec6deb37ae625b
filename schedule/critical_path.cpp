#include "schedule/critical_path.h"

#include <algorithm>

namespace gyre::schedule {
namespace {

class Walk {
 public:
  Walk(const Schedule& schedule, const Simulation& simulation) : schedule_(schedule), simulation_(simulation) {}

  std::vector<Stretch> from(uint32_t last) && {
    Cause cause{Cause::Kind::program, last};
    // What happened just before `before_` is explained by `cause`.
    for (before_ = simulation_.steps[last].end; cause.kind != Cause::Kind::start;) cause = explain(cause);
    add(Stretch::Kind::delay, rank_, -1, last_step_, 0);
    std::reverse(path_.begin(), path_.end());
    return std::move(path_);
  }

 private:
  Cause explain(const Cause& cause) {
    switch (cause.kind) {
      case Cause::Kind::arrival:
      case Cause::Kind::completion:
        return message(cause.index, true);
      case Cause::Kind::port:
        return message(cause.index, false);
      case Cause::Kind::credit:
        add(Stretch::Kind::latency, rank_of(cause.index), rank_, cause.index, simulation_.steps[cause.index].end);
        return step(cause.index);
      default:
        return step(cause.index);
    }
  }
  Cause step(uint32_t index) {
    const StepTime& time = simulation_.steps[index];
    last_step_ = index;
    rank_ = rank_of(index);
    add(Stretch::Kind::step, rank_, -1, index, time.start);
    return time.cause;
  }
  Cause message(uint32_t index, bool arrived) {
    const MessageTime& time = simulation_.messages[index];
    if (arrived) add(Stretch::Kind::latency, time.from, time.to, time.sender, time.left);
    add(Stretch::Kind::transfer, time.from, time.to, time.sender, time.departure);
    return time.cause;
  }
  Rank rank_of(uint32_t step) const { return schedule_.programs[simulation_.steps[step].program].rank; }
  void add(Stretch::Kind kind, Rank rank, Rank peer, uint32_t step, double begin) {
    if (begin < before_) path_.push_back({kind, rank, peer, step, begin, before_});
    before_ = begin;
  }

  const Schedule& schedule_;
  const Simulation& simulation_;
  std::vector<Stretch> path_;
  double before_ = 0;
  Rank rank_ = 0;
  uint32_t last_step_ = 0;
};

}  // namespace

std::vector<Stretch> critical_path(const Schedule& schedule, const Simulation& simulation) {
  const auto& steps = simulation.steps;
  if (steps.empty()) return {};
  const auto last = std::max_element(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.end < b.end; });
  return Walk(schedule, simulation).from(static_cast<uint32_t>(last - steps.begin()));
}

}  // namespace gyre::schedule
