// The timed machine: plays a schedule on a Network, so that one sees what a collective will do on a machine that one does not have. A
// step starts when its strand is free, its messages are there and it has credits, slots and its rank's processor; its messages then
// leave through the ports that they need, each port one message at a time, and are there alpha later. Nothing is random unless asked
// for: the same input gives the same times.
#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "schedule/network.h"
#include "schedule/run.h"
#include "schedule/verify.h"

namespace gyre::schedule {

/// A rank that is slow: its processor's times are multiplied, and it begins late.
struct Straggler {
  Rank rank = 0;
  double factor = 1;
  double delay = 0;  ///< seconds
};

/// What is played: the conditions are those of the proof. All chunks have the same size here, and all slices of a chunk.
struct Trial {
  double block_bytes = 0;  ///< of a block (layout.h)
  Conditions conditions;
  uint32_t rounds = 1;  ///< each runs the whole schedule for `conditions.slices` slices of every chunk
  double jitter = 0;    ///< every time is longer by a random fraction of it, at most this one
  uint64_t seed = 0;    ///< of the jitter
  std::vector<Straggler> stragglers;
};
/// The trial of blocks that are cut into slices of at most `slice_bytes`, `conditions.slices` of them in flight together.
Trial trial(const Schedule&, double block_bytes, double slice_bytes, Conditions);

/// Why something did not happen earlier: what came just before it.
struct Cause {
  enum class Kind : uint8_t {
    start,       ///< nothing: it was there at the beginning, or when its rank began
    program,     ///< the step before it; for a message, the step that sends it
    processor,   ///< another step of the same processor
    arrival,     ///< a message
    credit,      ///< the step that took a message, whose slot or memory is free since
    completion,  ///< a message that was read from what is to be overwritten
    port,        ///< a message that went through the same port
  };
  Kind kind = Kind::start;
  uint32_t index = 0;  ///< into Simulation::messages for arrival, port and completion, else into steps
};

struct StepTime {
  uint32_t program = 0;  ///< index into Schedule::programs
  Position position;
  double start = 0;
  double end = 0;
  Cause cause;
};

struct MessageTime {
  uint32_t sender = 0;  ///< index into Simulation::steps, as is the receiver
  uint32_t receiver = 0;
  Rank from = 0;
  Rank to = 0;
  uint32_t link_class = 0;
  double bytes = 0;
  double departure = 0;  ///< its first byte goes into the port
  double left = 0;       ///< its last one has
  double arrival = 0;
  Cause cause;  ///< of the departure; of kind program in posted mode: the sender, or the step that let its receive be announced
};

/// One direction of a port, and how long messages went through it.
struct PortTime {
  uint32_t link_class = 0;
  uint32_t port = 0;
  bool inward = false;
  double busy = 0;
};

/// A stretch of the critical path.
struct Stretch {
  enum class Kind : uint8_t { delay, step, transfer, latency };
  Kind kind = Kind::step;
  Rank rank = 0;
  Rank peer = -1;     ///< the receiver; of transfer, and of the latency of a message
  uint32_t step = 0;  ///< index into Simulation::steps
  double begin = 0;
  double end = 0;
};

struct Simulation {
  double finish = 0;                ///< seconds
  std::vector<double> rank_finish;  ///< [rank]
  std::vector<StepTime> steps;      ///< in the order of their starts on a processor
  std::vector<MessageTime> messages;
  std::vector<PortTime> ports;  ///< those that were used
  std::vector<Stretch> path;    ///< what the finish waited for, from time 0 to the finish without a gap
};

/// Error: invalid_argument for a link that is missing, or an input that makes no sense; internal for a schedule that is
/// malformed or deadlocks.
Result<Simulation> simulate(const Schedule&, const Network&, const Trial&);

/// On a machine where a message takes one second and all else none: a message of hop h arrives at time h.
Result<Simulation> hop_by_hop(const Schedule&);
/// The longest chain of messages of which each must wait for the one before it.
Result<uint32_t> hops(const Schedule&);

}  // namespace gyre::schedule
