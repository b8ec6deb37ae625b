#include "topo/tree.h"

#include <algorithm>

#include "schedule/canonical.h"
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
  if (shape.ordered) builder.ordered();
  for (uint32_t c = 0; c < channels; ++c) along_tree(builder, shape.collective, trees[c], c);
  return std::move(builder).build();
}

namespace {

// One channel of sums by the canonical tree: each is made by the root, where the root's part is in it, else by its lowest rank, and a rank
// makes its sums one after the other. An all-reduce comes down the same edges, the largest half first.
class InRankOrder {
 public:
  InRankOrder(schedule::Builder& builder, const Shape& shape, Rank root, uint32_t channel)
      : builder_(builder), canonical_(static_cast<uint32_t>(shape.ranks)), edges_(shape.ranks), root_(root), channel_(channel) {}

  void up() {
    builder_.channel(channel_);
    sum(0, canonical_.parts());
  }
  void down() {
    const Chunks out{Buffer::output, channel_, 1};
    for (Rank rank = 0; rank < static_cast<Rank>(edges_.nodes.size()); ++rank) {
      auto& [parent, children, place] = edges_.nodes[static_cast<size_t>(rank)];
      std::reverse(children.begin(), children.end());
      builder_.channel(channel_, rank == root_ ? 0 : 1);
      if (rank != root_) builder_.step(rank, {&parent, 1}, {}, out, children);
      if (rank == root_ && !children.empty()) builder_.step(rank, {}, out, {}, children);
    }
  }

 private:
  // Who makes it.
  Rank sum(uint32_t first, uint32_t end) {
    if (end - first == 1) return static_cast<Rank>(first);
    const uint32_t middle = canonical_.middle(first, end);
    const Rank left = sum(first, middle);
    const Rank right = sum(middle, end);
    const Rank maker = right == root_ ? right : left;
    const Rank other = maker == left ? right : left;
    const auto kind = end - first == canonical_.parts() ? schedule::Builder::Sum::whole : schedule::Builder::Sum::partial;
    const Chunks all{{}, channel_, 1};
    builder_.step(other, {}, builder_.current(other, all), {}, {&maker, 1});
    builder_.step(maker, {&other, 1}, builder_.current(maker, all), builder_.room(maker, all, kind), {}, maker == left ? 0 : 1);
    edges_.add(maker, other);
    return maker;
  }

  schedule::Builder& builder_;
  schedule::CanonicalTree canonical_;
  Tree edges_;
  Rank root_;
  uint32_t channel_;
};

schedule::Schedule tree_in_rank_order(const Shape& shape, Rank root) {
  const bool down = shape.collective == Collective::all_reduce;
  schedule::Builder builder("tree", {shape.collective, shape.ranks, shape.root, shape.channels}, shape.channels, down ? 2 : 1);
  builder.ordered();
  for (uint32_t c = 0; c < shape.channels && shape.ranks > 1; ++c) {
    InRankOrder channel(builder, shape, root, c);
    channel.up();
    if (down) channel.down();
  }
  return std::move(builder).build();
}

}  // namespace

schedule::Schedule tree(const Shape& shape) {
  const Rank root = rooted(shape.collective) ? shape.root : 0;
  if (shape.ordered && reduces(shape.collective)) return tree_in_rank_order(shape, root);
  const auto at = [&](int index) { return (index + root) % shape.ranks; };
  Tree heap(shape.ranks);
  for (int i = 1; i < shape.ranks; ++i) heap.add(at((i - 1) / 2), at(i));
  return along_trees("tree", shape, std::vector<Tree>(shape.channels, heap));
}

}  // namespace gyre::topo
