// Does a schedule compute the collective? Runs it with expressions in place of data, over connections without bounds: what a program
// computes depends only on its messages, and their order only on the programs, so credits, slices and modes change nothing here.
#pragma once
#include "schedule/verify.h"
#include "schedule/wiring.h"

namespace gyre::schedule {

struct Meaning {
  std::string fault;  ///< the first rule that is broken; empty: it computes the collective
  Proof proof;
};

/// Accesses of different strands to the same memory are known to be ordered (order.h).
Meaning interpret(const Schedule&, const Wiring&, bool in_place, bool ordered = false);

}  // namespace gyre::schedule
