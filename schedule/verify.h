// The proof that precedes every run, in three questions: does the schedule compute the collective (meaning.h), are all accesses to memory
// ordered (order.h), and does it never get stuck (flow.h). A schedule that does not pass is not run.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"

namespace gyre::schedule {

/// How connections carry messages.
enum class Mode : uint8_t {
  buffered,  ///< through slots: when a step has run, its messages have left the sender's memory
  posted,    ///< from the sender's memory, into the receiver's where the receive is a plain one, any time after the receive is announced
  mapped,    ///< the receiver reads the sender's memory in its own step
};

struct Conditions {
  uint32_t credits = 2;  ///< messages under way on a connection
  uint32_t slices = 1;   ///< slices of a chunk in flight together
  Mode mode = Mode::buffered;
  bool in_place = false;
  /// Sums are those of the canonical tree (canonical.h), left and right exchanged or not, and their parts lie where they have room
  /// (Form). Nothing more is asked where nothing is reduced.
  bool ordered = false;
};

/// What a value is of a reduction. In ordered numerics a partial sum is wider than an element of a 16- or 8-bit type, in memory and on
/// the wire; parts travel as they are, and the whole is rounded where it is made.
enum class Form : uint8_t {
  part,     ///< one rank's input
  partial,  ///< reduced from some ranks' parts
  whole,    ///< from all
};

/// What is known of a step after the proof.
struct Fact {
  bool complete = false;    ///< its value holds every rank's part and was reduced here: the place for an average's division
  bool replicated = false;  ///< the same reduction is made on another rank too, and must give the same bits there
  // Of reductions. In ordered numerics all that arrives for a step is of one form.
  Form arrived = Form::part;
  Form local = Form::part;  ///< of `src`; the input is always a part
  Form value = Form::part;  ///< of what the step writes and sends
};

struct Proof {
  std::vector<std::vector<Fact>> facts;  ///< [program][step]
  bool sends_partial = false;            ///< a message holds a partial sum
};

/// Proves one schedule under several conditions, which costs less than proving it anew for each: what a schedule means depends on where
/// memory is shared, the order of accesses also on the mode, and only the last question on credits and slices.
class Verifier {
 public:
  /// Keeps a reference to the schedule.
  explicit Verifier(const Schedule&);
  Verifier(Verifier&&) noexcept;
  Verifier& operator=(Verifier&&) = delete;
  ~Verifier();

  /// Error: Code::internal with the chunk, rank, channel, strand and step that break the rule.
  Result<Proof> run(const Conditions&);

 private:
  struct Known;
  const Schedule& schedule_;
  std::unique_ptr<Known> known_;
};

/// Under one condition.
Result<Proof> verify(const Schedule&, const Conditions&);

}  // namespace gyre::schedule
