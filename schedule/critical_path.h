// What a simulated finish waited for.
#pragma once
#include "schedule/simulate.h"

namespace gyre::schedule {

/// From the last step back, cause by cause, to time 0; in the order of time and without a gap.
std::vector<Stretch> critical_path(const Schedule&, const Simulation&);

}  // namespace gyre::schedule
