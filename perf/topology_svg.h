// A machine's topology as a picture: what hangs on what, as boxes in boxes, and the NIC that each GPU goes out by.
#pragma once
#include <string>

#include "topo/topology.h"

namespace gyre::perf {

/// An SVG document, readable alone.
std::string topology_svg(const topo::Topology&, const std::string& title);

}  // namespace gyre::perf
