#include "topo/tree.h"

#include "topo/families.h"

namespace gyre::topo {

using schedule::Buffer;
using schedule::Chunks;

void along_tree(schedule::Builder& builder, Collective collective, const Tree& tree, uint32_t channel) {
  const Chunks in{Buffer::input, channel, 1};
  const Chunks out{Buffer::output, channel, 1};
  const bool up = collective != Collective::broadcast;
  const bool down = collective != Collective::reduce;
  for (Rank rank = 0; rank < static_cast<Rank>(tree.nodes.size()) && tree.nodes.size() > 1; ++rank) {
    const auto& [parent, children, place] = tree.nodes[static_cast<size_t>(rank)];
    builder.channel(channel);
    if (parent < 0) {
      const std::span<const Rank> to = down ? std::span(children) : std::span<const Rank>();
      if (up) builder.step(rank, children, in, out, to, place);
      if (!up) builder.step(rank, {}, in, {}, to);
      continue;
    }
    if (up) builder.step(rank, children, in, {}, {&parent, 1}, place);
    if (up && down) builder.channel(channel, 1);
    if (down) builder.step(rank, {&parent, 1}, {}, out, children);
  }
}

schedule::Schedule along_trees(std::string family, const Shape& shape, std::span<const Tree> trees) {
  const auto channels = static_cast<uint32_t>(trees.size());
  schedule::Builder builder(std::move(family), {shape.collective, shape.ranks, shape.root, channels}, channels,
                            shape.collective == Collective::all_reduce ? 2 : 1);
  for (uint32_t c = 0; c < channels; ++c) along_tree(builder, shape.collective, trees[c], c);
  return std::move(builder).build();
}

schedule::Schedule tree(const Shape& shape) {
  const Rank root = rooted(shape.collective) ? shape.root : 0;
  const auto at = [&](int index) { return (index + root) % shape.ranks; };
  Tree heap(shape.ranks);
  for (int i = 1; i < shape.ranks; ++i) heap.add(at((i - 1) / 2), at(i));
  return along_trees("tree", shape, std::vector<Tree>(shape.channels, heap));
}

}  // namespace gyre::topo
