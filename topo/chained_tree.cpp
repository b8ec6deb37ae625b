#include "topo/families.h"
#include "topo/tree.h"

namespace gyre::topo {

Tree with_chains(const Tree& nodes_tree, int per_node, bool backwards, std::optional<Rank> root) {
  const auto nodes = static_cast<int>(nodes_tree.nodes.size());
  const auto head = [&](Rank node) {
    if (root && *root / per_node == node) return *root;
    return node * per_node + (backwards ? per_node - 1 : 0);
  };
  Tree tree(nodes * per_node);
  for (Rank node = 0; node < nodes; ++node) {
    const Rank first = head(node);
    const Tree::Node& at = nodes_tree.nodes[static_cast<size_t>(node)];
    for (const Rank child : at.children) tree.add(first, head(child));
    tree.nodes[static_cast<size_t>(first)].place = at.place;
    for (Rank rank = first + 1; rank < (node + 1) * per_node; ++rank) tree.add(rank - 1, rank);
    for (Rank rank = first - 1; rank >= node * per_node; --rank) tree.add(rank + 1, rank);
  }
  return tree;
}

schedule::Schedule chained_tree(const Shape& shape) {
  const int per_node = shape.ranks == 1 ? 1 : shape.grid[0];
  const Shape nodes{shape.collective, shape.ranks / per_node, 1, shape.root / per_node, {}};
  const std::optional<Rank> root = rooted(shape.collective) ? std::optional(shape.root) : std::nullopt;
  std::vector<Tree> trees;
  for (uint32_t c = 0; c < 2 * shape.channels; ++c)
    trees.push_back(with_chains(binary_tree(nodes, c % 2 == 1), per_node, c % 2 == 1, root));
  return along_trees("chained_tree", shape, trees);
}

}  // namespace gyre::topo
