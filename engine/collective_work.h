// A collective, directly where all ranks can, else by messages.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/direct.h"
#include "engine/machines.h"
#include "engine/planner.h"
#include "engine/work.h"

namespace gyre::engine {

class CollectiveWork final : public Work {
 public:
  /// `contests`: what can be read straight is where calls find that to be the faster way.
  CollectiveWork(Rank rank, std::vector<std::vector<transport::Fifo*>> fifos, Away away, std::unique_ptr<Direct> direct, bool contests,
                 const Work& groups)
      : machines_(rank, std::move(fifos), away), direct_(std::move(direct)) {
    if (contests) contests_ = std::make_unique<Contests>();
    machines_.between(groups);
    if (direct_ != nullptr) direct_->between(groups);
  }

  /// Prepares a run; the plan and the identity's text must outlive it.
  void bind(const Planned& planned, const Identity& call, const Buffers& buffers, TimeLimit limit) {
    planned_ = &planned;
    call_ = call;
    buffers_ = buffers;
    limit_ = limit.value_or(std::chrono::milliseconds::zero());
    directly_ = planned.direct.has_value();
    contest_ = directly_ && planned.direct->contested && contests_ != nullptr ? &contests_->of(planned.call) : nullptr;
    if (contest_ != nullptr) begun_ = Clock::now();
    if (directly_) {
      direct_->bind(*planned.direct, call_, buffers_, contest_);
    } else {
      machines_.bind(*planned.messages, call_, buffers_);
    }
  }
  /// True when no rank reads or writes this rank's memory any more, whatever became of the call.
  bool released() { return direct_ == nullptr || direct_->released(); }

  /// What calls have found; null: none find out.
  const Contests* contests() const { return contests_.get(); }

  /// After a run that failed, before the user has the memory again.
  void take_back() {
    if (direct_ != nullptr) direct_->take_back();
  }

  Moved move() override {
    const Moved moved = directly_ ? direct_->move() : machines_.move();
    if (moved.done && directly_ && direct_->declined()) {
      directly_ = false;
      machines_.bind(*planned_->messages, call_, buffers_);
      return {true, false};
    }
    if (moved.done && contest_ != nullptr)
      std::exchange(contest_, nullptr)->end(std::chrono::duration<float, std::micro>(Clock::now() - begun_).count());
    return moved;
  }
  Rank stranger() const override { return by().stranger(); }
  std::optional<Error> wrong() const override { return by().wrong(); }
  TimeLimit limit() const override { return limit_ == limit_.zero() ? TimeLimit() : limit_; }
  std::vector<Rank> awaited() const override { return by().awaited(); }
  Rank awaits_only() const override { return by().awaits_only(); }
  std::string where() const override { return by().where(); }
  Description description() const override { return by().description(); }
  std::vector<transport::Pair> pairs() const override { return by().pairs(); }

 private:
  using Clock = std::chrono::steady_clock;

  const Work& by() const { return directly_ ? static_cast<const Work&>(*direct_) : machines_; }

  Machines machines_;
  std::unique_ptr<Direct> direct_;  // null: not all ranks are on this host
  bool directly_ = false;
  std::unique_ptr<Contests> contests_;
  Contest* contest_ = nullptr;  // that the call under way may be a part of
  Clock::time_point begun_;
  const Planned* planned_ = nullptr;
  Identity call_;
  Buffers buffers_;
  std::chrono::milliseconds limit_{};  // zero: none
};

}  // namespace gyre::engine
