// GYRE_EXPLAIN: for every kind of call (collective and size class) what it could run, at what predicted time, and what runs; and at the
// communicator's end what was used how often. Rank 0 says it, in the log whatever its level, since all ranks choose alike.
#pragma once
#include <map>
#include <string>
#include <tuple>

#include "engine/contest.h"
#include "engine/planner.h"

namespace gyre::engine {

class Explanations {
 public:
  Explanations() = default;
  Explanations(const Explanations&) = delete;
  Explanations& operator=(const Explanations&) = delete;
  ~Explanations();  ///< says what was used

  /// Explains the first of its kind of a call that is about to be made, or captured, with these buffers; the others' are taken to be of the
  /// kind, too.
  void note(const Planned&, const Buffers&, Planner&);
  /// It runs; one that was captured does at each replay.
  void count(const Planned&, const Buffers&);
  /// How many of the calls that find out the faster way went straight.
  void hear(const Contests&);

 private:
  /// Of size class n are calls whose blocks have 2^(n-1) to 2^n - 1 bytes; of 0 those of none.
  using Kind = std::tuple<Collective, int, BufferKind>;
  static Kind kind_of(const Planned&, const Buffers&);
  std::map<Kind, std::map<std::string, uint64_t>> used_;  // by algorithm
};

}  // namespace gyre::engine
