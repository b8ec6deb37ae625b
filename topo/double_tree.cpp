#include "topo/families.h"
#include "topo/tree.h"

namespace gyre::topo {
namespace {

// The binary tree whose order from left to right is that of the positions 1 … count. Odd positions are leaves. A position's parent is
// the next on the level above, where that does not exist the next ancestor on the left; the root's is 0.
int parent_of(int position, int count) {
  const int lowest = position & -position;
  const int above = (position - lowest) | (lowest << 1);
  return above <= count ? above : position - lowest;
}

}  // namespace

// A root of a broadcast or a reduce stands above trees of all others.
Tree binary_tree(const Shape& shape, bool second) {
  const bool above = rooted(shape.collective) && shape.ranks > 1;
  const int count = above ? shape.ranks - 1 : shape.ranks;
  const auto at = [&](int position) {
    const int index = (position - 1 + (second ? count - 1 : 0)) % count;
    return above ? (shape.root + 1 + index) % shape.ranks : index;
  };
  Tree tree(shape.ranks);
  for (int position = 1; position <= count; ++position) {
    const int parent = parent_of(position, count);
    if (parent != 0) tree.add(at(parent), at(position));
    if (parent > position) tree.nodes[static_cast<size_t>(at(parent))].place = 1;  // a left child: before the rank's own part
    if (parent == 0 && above) tree.add(shape.root, at(position));
  }
  return tree;
}

schedule::Schedule double_tree(const Shape& shape) {
  std::vector<Tree> trees;
  for (uint32_t c = 0; c < 2 * shape.channels; ++c) trees.push_back(binary_tree(shape, c % 2 == 1));
  return along_trees("double_tree", shape, trees);
}

}  // namespace gyre::topo
