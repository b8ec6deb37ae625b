// The machines that schedules are simulated on where none is described.
#pragma once
#include <string>

#include "topo/graph.h"

namespace gyre::perf {

/// Nodes of equally many ranks, with round figures of usual hardware: to compare schedules with each other, not with a clock.
topo::Graph example_machine(int nodes, int ranks_per_node);
/// "one node with local links of 1.00 µs and 20 GB/s".
std::string text(const topo::Graph&);

}  // namespace gyre::perf
