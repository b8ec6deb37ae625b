// Does a schedule ever get stuck? Runs it without data: credits, slices in flight, and memory that messages under way are read from.
// A step that can run stays able to run until it does (run.h), so one run to the end is all interleavings.
#pragma once
#include <string>

#include "schedule/announce.h"
#include "schedule/verify.h"
#include "schedule/wiring.h"

namespace gyre::schedule {

/// Of a schedule whose meaning was looked at. Announcers, one per program, serve all runs that are equal in where memory is shared.
std::string deadlock(const Schedule&, const Wiring&, const Conditions&, std::vector<Announcer>&);

/// Where the value of a step lies for a transport that reads the memory of the sender: in what the step writes, else in its only
/// source. What is reduced and not stored lies nowhere, and goes out through a slot.
inline Chunks lies_in(const Step& step) {
  if (step.dst.present()) return step.dst;
  return step.from.count == 0 ? step.src : Chunks{};
}

}  // namespace gyre::schedule
