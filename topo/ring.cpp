#include "topo/bucket.h"
#include "topo/families.h"
#include "topo/tree.h"

namespace gyre::topo {
namespace {

// From the root around the ring, or to it.
Tree chain(const Shape& shape, bool backwards) {
  Tree tree(shape.ranks);
  const auto at = [&](int hops) { return (shape.root + (backwards ? shape.ranks - hops : hops)) % shape.ranks; };
  for (int hops = 1; hops < shape.ranks; ++hops) {
    if (shape.collective == Collective::broadcast) tree.add(at(hops - 1), at(hops));
    if (shape.collective == Collective::reduce) tree.add(at(hops + 1), at(hops));
  }
  for (Tree::Node& node : tree.nodes) node.place = static_cast<uint32_t>(node.children.size());
  return tree;
}

}  // namespace

schedule::Schedule ring(const Shape& shape) {
  if (!rooted(shape.collective)) return bucket_over("ring", shape, *ring_lines(shape));
  std::vector<Tree> chains;
  for (uint32_t c = 0; c < shape.channels; ++c) chains.push_back(chain(shape, c % 2 == 1));
  return along_trees("ring", shape, chains);
}

}  // namespace gyre::topo
