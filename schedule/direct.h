// A collective on memory that every rank can reach, in one phase: when all inputs are ready each rank makes its passes, and when all have
// made theirs, all outputs are ready. What a message would carry a rank reads itself, and a pass reads each operand once: no other
// form moves fewer bytes. Three forms:
//   staged: a rank reads its own input and copies that the others have shown, and writes its own output;
//   mapped: ranks read each other's inputs and write each other's outputs; the work of a reduction is shared among all;
//   read:   ranks read each other's inputs, and each writes its own output.
// Pure data, proven before it runs, as schedules of messages are (verify.h).
#pragma once
#include <set>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace gyre::schedule {

/// A chunk of a rank's input or output.
struct Spot {
  Rank rank = 0;
  uint32_t chunk = 0;

  bool operator==(const Spot&) const = default;
};

/// Input chunks, reduced in the order listed, to output chunks.
struct Pass {
  std::vector<Spot> from;
  std::vector<Spot> to;
};

struct Direct {
  bool staged = false;
  Layout layout;                          ///< its chunks: pieces of a block
  std::vector<std::vector<Pass>> passes;  ///< by rank
  std::vector<Rank> order{};              ///< of ranks, in which parts are reduced; empty: that of their numbers
};

/// `layout.chunks` is not looked at.
Direct staged(Layout);
Direct mapped(Layout);
Direct read(Layout);
/// A mapped form that reduces as a schedule of messages does: what a rank reduces there, all ranks' parts at once, it reduces here, for all
/// who are to have it. Of other schedules a form with a fault.
Direct mapped(const Schedule&);
/// In which a step that reduces takes the parts of the ranks from which they come, and its own.
std::vector<Rank> order_of(const Schedule&, Rank, const Step&);

/// Chunks that passes of other ranks read of this rank's input, and write of its output; ascending.
struct Touched {
  std::set<uint32_t> read, written;
};
Touched touched_by_others(const Direct&, Rank);

/// What is wrong with it: a pass that writes nothing, an output chunk that nobody or two write, that is not what the collective defines in
/// that order, or that somebody may still read; empty: it computes the collective, in whatever order ranks go.
std::string fault(const Direct&, bool in_place);

}  // namespace gyre::schedule
