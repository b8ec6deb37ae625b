// A schedule as text that a person reads.
#pragma once
#include <string>

#include "schedule/schedule.h"

namespace gyre::schedule {

/// "rrc in[2] <0": one step, its operation first.
std::string describe(const Schedule&, const Step&);
/// The whole schedule: a line per step, a column per rank; one table per channel.
std::string print(const Schedule&);

}  // namespace gyre::schedule
