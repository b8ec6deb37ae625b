// Channels of one machine: the orders in which rings, and the chains of trees, pass its GPUs, so that each NVLink and each port carries one
// of them each way as far as there are such orders. A pure function of the links: all ranks that have these agree.
#pragma once
#include <span>
#include <vector>

#include "topo/node_links.h"

namespace gyre::topo {

struct Channel {
  std::vector<int> order;  ///< each GPU once; without rails the first comes after the last
  int in = -1;             ///< the rail by which it comes from another machine to the first GPU; -1: it does not
  int out = -1;            ///< and by which it leaves the last
  bool alone = false;      ///< no other channel uses its NVLinks in its direction; not: some of its hops have no NVLink, or share one
};

/// The rails of a channel that goes through.
struct Passage {
  int in = 0;
  int out = 0;

  bool operator==(const Passage&) const = default;
};

constexpr int most_channels = 32;
/// Of a machine's search, all together: some tenths of a second.
constexpr int most_search_steps = 200'000;

/// Rings of a machine alone: as many as NVLinks carry, at most most_channels; where they carry none one ring, of the nearest neighbours.
std::vector<Channel> rings_inside(const NodeLinks&);
/// Channels of a machine among others, one for each passage: from a GPU near its first rail to one near its last, which are two where
/// both rails have one GPU; from others where else GPUs that do not reach each other would be neighbours. Requires: the rails exist, or
/// both are -1: any GPU.
std::vector<Channel> paths_through(const NodeLinks&, std::span<const Passage>, int most_steps = most_search_steps);

}  // namespace gyre::topo
