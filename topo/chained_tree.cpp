#include <numeric>
#include <utility>

#include "topo/families.h"
#include "topo/tree.h"

namespace gyre::topo {

std::vector<NodeChain> equal_chains(int nodes, int per_node) {
  std::vector<NodeChain> chains(static_cast<size_t>(nodes));
  Rank next = 0;
  for (NodeChain& chain : chains) {
    chain.ranks.resize(static_cast<size_t>(per_node));
    std::iota(chain.ranks.begin(), chain.ranks.end(), std::exchange(next, next + per_node));
  }
  return chains;
}

Tree with_chains(const Tree& nodes_tree, std::span<const NodeChain> chains) {
  size_t ranks = 0;
  for (const NodeChain& chain : chains) ranks += chain.ranks.size();
  Tree tree(static_cast<int>(ranks));
  for (size_t node = 0; node < chains.size(); ++node) {
    const auto& [chain, head] = chains[node];
    const Tree::Node& at = nodes_tree.nodes[node];
    for (const Rank child : at.children) {
      const NodeChain& below = chains[static_cast<size_t>(child)];
      tree.add(chain[head], below.ranks[below.head]);
    }
    tree.nodes[static_cast<size_t>(chain[head])].place = at.place;
    for (size_t i = head + 1; i < chain.size(); ++i) tree.add(chain[i - 1], chain[i]);
    for (size_t i = head; i > 0; --i) tree.add(chain[i], chain[i - 1]);
  }
  return tree;
}

schedule::Schedule chained_tree(const Shape& shape) {
  const int per_node = shape.ranks == 1 ? 1 : shape.grid[0];
  const Shape nodes{shape.collective, shape.ranks / per_node, 1, shape.root / per_node, {}};
  std::vector<Tree> trees;
  for (uint32_t c = 0; c < 2 * shape.channels; ++c) {
    const bool odd = c % 2 == 1;
    std::vector<NodeChain> chains = equal_chains(nodes.ranks, per_node);
    for (NodeChain& chain : chains) chain.head = odd ? chain.ranks.size() - 1 : 0;
    if (rooted(shape.collective)) chains[static_cast<size_t>(nodes.root)].head = static_cast<size_t>(shape.root % per_node);
    trees.push_back(with_chains(binary_tree(nodes, odd), chains));
  }
  return along_trees("chained_tree", shape, trees);
}

}  // namespace gyre::topo
