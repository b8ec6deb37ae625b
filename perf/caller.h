// The calls of one row of a sweep on one communicator, prepared so that an iteration does nothing else than make them.
#pragma once
#include <span>
#include <vector>

#include "perf/measure.h"
#include "perf/reference.h"

namespace gyre::perf {

/// Makes an iteration's calls on a lane. Messages to the next rank go in one group, as nccl-tests aggregates them.
class Caller {
 public:
  Caller(const Lane& lane, const Case& c, int calls) : communicator_(*lane.communicator), place_(lane.place), calls_(calls) {
    if (c.benchmark->collective) {
      call_ = {*c.benchmark->collective, c.count, c.type, c.op, c.root, input_scalar(c.type, c.op, communicator_.rank())};
      return;
    }
    using Kind = engine::Transfer::Kind;
    const Rank rank = communicator_.rank();
    for (int i = 0; i < calls; ++i) {
      transfers_.push_back({Kind::send, (rank + 1) % c.ranks, place_.input, c.count, c.type});
      transfers_.push_back({Kind::receive, (rank + c.ranks - 1) % c.ranks, place_.output, c.count, c.type});
    }
  }

  /// An iteration is so many rounds.
  int rounds() const { return transfers_.empty() ? calls_ : 1; }
  Status round() const {
    return transfers_.empty() ? communicator_.run(call_, place_.input, place_.output) : communicator_.exchange(transfers_);
  }
  engine::Communicator& communicator() const { return communicator_; }

 private:
  engine::Communicator& communicator_;
  Place place_;
  int calls_;
  engine::Call call_{};
  std::vector<engine::Transfer> transfers_;
};

/// Nobody leaves before everybody has come: so that ranks start together, and before a wait for the bootstrap, since a rank that only
/// sends may be through before its messages have left, and moves them only while it is in a call.
Status meet(engine::Communicator&);
/// On every communicator, for each moves only what is its own.
Status meet(std::span<const Caller>);

}  // namespace gyre::perf
