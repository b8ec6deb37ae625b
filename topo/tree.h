// Trees over the ranks and what flows along them: sums up, results down. Up and down are two strands, so that one piece of data can come
// down while the next goes up.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "topo/shape.h"

namespace gyre::topo {

struct Tree {
  struct Node {
    Rank parent = -1;  ///< of the root: -1
    std::vector<Rank> children;
    uint32_t place = 0;  ///< how many children's sums stand before the rank's own part
  };
  std::vector<Node> nodes;  ///< [rank]

  explicit Tree(int ranks) : nodes(static_cast<size_t>(ranks)) {}
  void add(Rank parent, Rank child) {
    nodes[static_cast<size_t>(parent)].children.push_back(child);
    nodes[static_cast<size_t>(child)].parent = parent;
  }
};

/// A binary tree whose order from left to right is that of the ranks. The second has everybody one position further, so that who is inner
/// in one is a leaf in the other.
Tree binary_tree(const Shape&, bool second);

/// A node's ranks in a chain, and which of them stands in the tree between nodes: from there the chain goes both ways.
struct NodeChain {
  std::vector<Rank> ranks;
  size_t head = 0;
};
/// Of nodes with as many ranks each, one after the other.
std::vector<NodeChain> equal_chains(int nodes, int per_node);
/// Chains joined as `nodes_tree` joins nodes.
Tree with_chains(const Tree& nodes_tree, std::span<const NodeChain>);

/// The all-reduce, broadcast or reduce of chunk `channel` along a tree from and to its root, on that channel; an all-reduce has the way
/// down on strand 1.
void along_tree(schedule::Builder&, Collective, const Tree&, uint32_t channel);

/// A schedule with a tree per channel.
schedule::Schedule along_trees(std::string family, const Shape&, std::span<const Tree>);

}  // namespace gyre::topo
