// What a schedule must be before anything about it can be asked.
#pragma once
#include <string>

#include "schedule/schedule.h"

namespace gyre::schedule {

/// Names what can't even be tried: ranks and chunks that do not exist, or are not this rank's or channel's to touch, and steps without
/// a source or a size. Empty: nothing.
std::string malformed(const Schedule&);

}  // namespace gyre::schedule
