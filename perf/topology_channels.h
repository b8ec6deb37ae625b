// The channels of a machine, alone or among others like it, for people.
#pragma once
#include <string>

#include "topo/topology.h"

namespace gyre::perf {

/// A line for each channel of each kind of node: the GPUs in order, by which ports it comes and goes, and whether its NVLinks are its own;
/// and how trees join the nodes. Empty without GPUs. Requires: nodes > 0.
std::string topology_channels(const topo::Topology&, int nodes);

}  // namespace gyre::perf
