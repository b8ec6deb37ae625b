// A deadlock in words. Private to the proofs and the simulator.
#pragma once
#include <fmt/format.h>

#include <string>

#include "schedule/run.h"
#include "schedule/wiring.h"

namespace gyre::schedule {

/// What the programs from `first` to before `end` wait for that have not come to their end, the first four of them; empty: all have.
/// `stand(program)` is the step where a program stands, and `blocked(program)` what that waits for.
template <class Stand, class WaitsFor>
std::string stuck(const Schedule& schedule, uint32_t first, uint32_t end, Stand stand, WaitsFor blocked) {
  constexpr std::string_view waits[] = {"nothing", "a message from", "a credit to", "the completion of its own send"};
  std::string text;
  int shown = 0;
  for (uint32_t p = first; p < end && shown < 4; ++p) {
    const Program& program = schedule.programs[p];
    const size_t step = stand(p);
    if (step == program.steps.size()) continue;
    const Blocked why = blocked(p);
    text += fmt::format(" {} ({}) waits for {}", where(schedule, program, step), operation(program.steps[step]),
                        waits[static_cast<size_t>(why.wait)]);
    text += why.peer >= 0 ? fmt::format(" rank {};", why.peer) : ";";
    ++shown;
  }
  return shown == 0 ? "" : "deadlock:" + text;
}

}  // namespace gyre::schedule
