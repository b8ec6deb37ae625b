// A schedule as a graph that Graphviz draws: ranks, and between them an arrow per direction in which messages go, with the hops at which
// they do. What happens when is timeline.h's.
#pragma once
#include <span>
#include <string>

#include "base/result.h"
#include "schedule/schedule.h"

namespace gyre::schedule {

/// In dot's language. Ranks of a node are drawn together; `node_of` empty: there is one.
Result<std::string> graphviz(const Schedule&, std::span<const int> node_of = {});

}  // namespace gyre::schedule
