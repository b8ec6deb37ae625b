// A machine's topology as a picture: what hangs on what, as boxes in boxes, the NIC that each GPU goes out by, and the channels.
#pragma once
#include <string>

#include "topo/topology.h"

namespace gyre::perf {

/// An SVG document, readable alone, with the channels of a job on so many machines like it.
std::string topology_svg(const topo::Topology&, const std::string& title, int nodes = 1);

}  // namespace gyre::perf
