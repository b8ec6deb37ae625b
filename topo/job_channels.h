// Channels of a whole job: rings over all of its ranks that stay inside a machine as long as they can and go from one to the next by one
// rail each, and trees whose chains inside a machine are the rings', joined between machines as a double tree's. A pure function of what
// ranks know of all: who has the same facts has the same channels, and the same digest of them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/relayed.h"
#include "topo/channel_orders.h"
#include "topo/channels.h"
#include "topo/graph.h"
#include "topo/tree.h"

namespace gyre::topo {

struct JobNode {
  NodeLinks links;
  std::vector<Rank> ranks;  ///< of each GPU
};

/// So many nodes with the same links, rank after rank.
std::vector<JobNode> equal_nodes(const NodeLinks&, int count);

struct JobChannel {
  std::vector<Channel> through;  ///< [node]
  schedule::RankOrder ring;      ///< each rank's next is the one after it
  schedule::RankOrder chain;     ///< the same, but on every node from the GPU near the channel's rail, so that trees cross none
  Tree tree;                     ///< its root is anybody
};

/// As many as rails that all nodes have; on one node as many as its NVLinks carry. `missing`: pairs of ranks that do not reach each other:
/// orders inside of a node avoid them, what is left is for relays(). Error: invalid_argument where nodes have ranks that are none of 0, 1,
/// … once each, or not one for each GPU.
Result<std::vector<JobChannel>> job_channels(std::span<const JobNode>, std::span<const LinkOverride> missing = {});
uint64_t digest(std::span<const JobChannel>);

/// A schedule of the family `ring` or `tree` along these channels, through relays where links are missing. Error: invalid_argument for
/// another family, or a shape of other ranks or channels; as schedule::relayed().
Result<schedule::Schedule> along_channels(std::string_view family, const Shape&, std::span<const JobChannel>,
                                          std::span<const LinkOverride> missing = {});

}  // namespace gyre::topo
