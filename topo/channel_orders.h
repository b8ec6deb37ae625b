// Orders in which the channels of a schedule pass all ranks, each its own, as a job's links have them (job_channels.h).
#pragma once
#include <vector>

#include "schedule/renamed.h"
#include "topo/shape.h"

namespace gyre::topo {

/// One of each for every channel.
struct ChannelOrders {
  std::vector<schedule::RankOrder> rings;
  std::vector<schedule::RankOrder> chains;  ///< for trees: nodes one after the other, each from the rank that stands in the tree
};

/// Orders for schedule::renamed() of a schedule of such a shape of positions whose channels are rings, odd ones backwards: each goes along
/// one of these rings; where there are more channels than rings, along them again the other way, and so on. `root` has the shape's root's
/// place.
std::vector<schedule::RankOrder> along_rings(const ChannelOrders&, const Shape&, Rank root);

/// The same for chained_tree's and chains. On the root's node a chain that does not begin with it is turned around until the root has its
/// place, by which one of its hops goes from the chain's last rank to its first.
std::vector<schedule::RankOrder> along_chains(const ChannelOrders&, const Shape&, Rank root);

}  // namespace gyre::topo
