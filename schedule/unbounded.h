// What the Machines (run.h) share that find what a schedule means, and whether its accesses are ordered: in both, connections have room
// for all messages ever sent, as how many fit is another proof's (flow.h). Private to the proofs.
#pragma once
#include <string>

#include "schedule/run.h"
#include "schedule/wiring.h"
#include "schedule/worklist.h"

namespace gyre::schedule {

/// A Machine derives from it, itself its parameter, and adds take(), put() and finish().
template <class Machine>
class Unbounded {
 public:
  // For advance(), of the program that runs.
  bool arrived(Rank peer) {
    Queue& queue = queues_[incoming(peer)];
    queue.awaited = queue.received == queue.sent;
    return !queue.awaited;
  }
  bool credit(Rank /*peer*/) const { return true; }
  bool overwritable(const Chunks&) const { return true; }

 protected:
  struct Queue {
    uint32_t sent = 0;
    uint32_t received = 0;
    bool awaited = false;  // the receiver waits for the next message
  };

  Unbounded(const Schedule& schedule, const Wiring& wiring)
      : schedule_(schedule),
        wiring_(wiring),
        queues_(wiring.links().size()),
        stand_(schedule.programs.size()),
        worklist_(schedule.programs.size()) {}

  /// Runs these programs until none can go on, or a rule is broken.
  void play(uint32_t first, uint32_t end) {
    for (uint32_t p = end; p-- > first;) worklist_.add(p);
    while (!worklist_.empty() && fault_.empty()) run_program(worklist_.next());
  }
  /// Runs the step at which a program stands, if it can.
  Blocked attempt(uint32_t p) {
    running_ = p;
    program_ = &schedule_.programs[p];
    step_ = stand_[p];
    return advance(static_cast<Machine&>(*this), schedule_, program_->steps[step_]);
  }
  /// The number of the next message from a peer, which is taken.
  uint32_t next_from(Rank peer) {
    const uint32_t link = incoming(peer);
    return wiring_.links()[link].first + queues_[link].received++;
  }
  /// The number of the next message to a peer, which is sent.
  uint32_t next_to(Rank peer) {
    Queue& queue = queues_[outgoing(peer)];
    const Link& link = wiring_.links()[outgoing(peer)];
    if (queue.awaited) worklist_.add(link.receiver);
    return link.first + queue.sent++;
  }
  uint32_t incoming(Rank peer) const { return wiring_.link(program_->channel, peer, program_->rank); }
  uint32_t outgoing(Rank peer) const { return wiring_.link(program_->channel, program_->rank, peer); }

  const Schedule& schedule_;
  const Wiring& wiring_;
  std::vector<Queue> queues_;    // [link]
  std::vector<uint32_t> stand_;  // [program]: the step
  std::string fault_;            // the first rule that was broken

  // of the step that is being tried
  const Program* program_ = nullptr;
  uint32_t running_ = 0;  // the number of its program
  uint32_t step_ = 0;

 private:
  void run_program(uint32_t p) {
    for (; stand_[p] < schedule_.programs[p].steps.size() && fault_.empty(); ++stand_[p]) {
      if (attempt(p).wait != Wait::nothing) return;
    }
  }

  Worklist worklist_;
};

}  // namespace gyre::schedule
