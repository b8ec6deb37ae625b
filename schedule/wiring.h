// What of a schedule is the same under all conditions, found once: who sends to whom, in which steps, and whether it is a schedule at
// all. Plain data for the proofs (meaning.h, order.h, flow.h) and the simulator.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace gyre::schedule {

/// A channel's messages from one rank to another: sent by one program and received by one, so that their order is the order of steps.
struct Link {
  static constexpr uint32_t nobody = UINT32_MAX;

  Rank from = 0;
  Rank to = 0;
  uint32_t sender = nobody;  ///< index into Schedule::programs
  uint32_t receiver = nobody;
  uint32_t first = 0;  ///< of its messages, in Wiring::sends
  uint32_t count = 0;
};

class Wiring {
 public:
  explicit Wiring(const Schedule&);

  /// What keeps this from being a schedule: ranks and chunks that do not exist or are not this rank's or channel's, steps that say
  /// nothing, strands that share a connection. Nothing else here can be used then. Empty: nothing.
  const std::string& malformed() const { return malformed_; }

  /// Of two ranks that exchange messages.
  uint32_t link(uint32_t channel, Rank from, Rank to) const { return table_[index(channel, from, to)]; }
  const std::vector<Link>& links() const { return links_; }
  /// The step, within its sender's program, that sends a message; messages of a link are neighbours.
  uint32_t sending_step(uint32_t message) const { return sends_[message]; }
  size_t messages() const { return sends_.size(); }
  /// Steps of all programs are numbered through.
  uint32_t first_step(size_t program) const { return first_step_[program]; }
  size_t program_of(uint32_t step) const;
  size_t steps() const { return first_step_.back(); }

 private:
  size_t index(uint32_t channel, Rank from, Rank to) const {
    return (channel * ranks_ + static_cast<size_t>(from)) * ranks_ + static_cast<size_t>(to);
  }
  Link& reach(uint32_t channel, Rank from, Rank to);
  void connect(const Schedule&);
  void connect(const Schedule&, uint32_t program);

  size_t ranks_;
  std::string malformed_;
  std::vector<uint32_t> table_;  // [channel, from, to]: index into links_
  std::vector<Link> links_;
  std::vector<uint32_t> sends_;
  std::vector<uint32_t> first_step_;
};

/// "rank 2 channel 0 strand 1 step 7"; without the strand where there is one only.
std::string where(const Schedule&, const Program&, size_t step);

}  // namespace gyre::schedule
