// The channels of a job as panels of a picture, one for each that differs: a row for every node, with its GPUs in the order of the tree's
// chain, so that a ring is followed along the rows and a tree down their left side.
#pragma once
#include <string>

#include "topo/topology.h"

namespace gyre::perf {

struct ChannelPanels {
  std::string elements;  ///< of SVG
  double width = 0;
  double height = 0;
};

/// Beside and below each other from (x, y) on, in rows about as wide as `width`, with a legend; of at most eight nodes, since more would
/// not be read. Empty without GPUs.
ChannelPanels channels_svg(const topo::Topology&, int nodes, double x, double y, double width);

}  // namespace gyre::perf
