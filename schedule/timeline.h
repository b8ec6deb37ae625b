// A simulation as a drawing in SVG: a lane for each rank, time from left to right, a box for each step, and under the boxes when the
// rank's port was sending; an arrow for each message. What the finish waited for is outlined.
#pragma once
#include <string>

#include "schedule/simulate.h"

namespace gyre::schedule {

struct Headline {
  std::string title;
  std::string subtitle;  ///< smaller: of which machine, which size
};
std::string timeline(const Schedule&, const Network&, const Simulation&, const Headline&);

}  // namespace gyre::schedule
