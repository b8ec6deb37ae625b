// The proof that precedes every run: interprets a schedule with expressions in place of data. Every output chunk must hold each rank's
// part exactly once, in the same association on every rank; nothing is read before it is written; no message is left over; and with the
// given credits and slices no interleaving deadlocks (see run.h). A schedule that does not pass is not run.
#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"

namespace gyre::schedule {

/// How connections carry messages: buffered through slots, or posted: the source of a send is read until its receiver has run.
enum class Mode : uint8_t { buffered, posted };

struct Conditions {
  uint32_t credits = 2;  ///< messages under way on a connection
  uint32_t slices = 1;   ///< slices of a chunk in flight together
  Mode mode = Mode::buffered;
  bool in_place = false;
};

/// What is known of a step after the proof.
struct Fact {
  bool complete = false;    ///< its value holds every rank's part and was reduced here: the place for an average's division
  bool replicated = false;  ///< the same reduction is made on another rank too, and must give the same bits there
};

struct Proof {
  std::vector<std::vector<Fact>> facts;  ///< [program][step]
};

/// Error: Code::internal with the chunk, rank and step that break the rule.
Result<Proof> verify(const Schedule&, const Conditions&);

}  // namespace gyre::schedule
