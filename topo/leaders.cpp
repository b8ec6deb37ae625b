#include <numeric>

#include "topo/families.h"
#include "topo/tree.h"

namespace gyre::topo {
namespace {

using schedule::Buffer;
using schedule::Chunks;

// One node's part of one channel of an all-reduce: around the leaders' ring as in families.h, every part taking up the sums of a node as
// it passes, and the results going on to the members as they come.
class Node {
 public:
  Node(schedule::Builder& builder, const Shape& shape, int node, uint32_t channel)
      : builder_(builder), local_(shape.grid[0]), nodes_(shape.grid[1]), node_(node), channels_(shape.channels), channel_(channel) {
    members_.resize(static_cast<size_t>(local_ - 1));
    std::iota(members_.begin(), members_.end(), leader(node) + 1);
  }

  void write() {
    builder_.channel(channel_);
    for (int s = 0; s < nodes_; ++s) collect(s);
    for (int s = 0; s < nodes_ - 1; ++s) pass_on(s);
    for (const Rank member : members_) {
      const Rank own = leader(node_);
      builder_.channel(channel_);
      for (int s = 0; s < nodes_; ++s) builder_.step(member, {}, part(Buffer::input, s), {}, {&own, 1});
      builder_.channel(channel_, 1);
      for (int s = 0; s < nodes_; ++s) builder_.step(member, {&own, 1}, {}, part(Buffer::output, s + nodes_ - 1), {});
    }
  }

 private:
  // Part s of those that the leader sends, one after the other: its node's own first; after all nodes comes the whole sum.
  void collect(int s) {
    std::vector<Rank> from = members_;
    if (s > 0) from.insert(from.begin(), leader(node_ - direction()));
    const bool complete = s == nodes_ - 1;
    std::vector<Rank> to = complete ? members_ : std::vector<Rank>();
    if (nodes_ > 1) to.insert(to.begin(), leader(node_ + direction()));
    const Chunks out = part(Buffer::output, s);
    builder_.step(leader(node_), from, part(Buffer::input, s), complete ? out : Chunks{}, to, s > 0 ? 1 : 0);
  }
  void pass_on(int s) {
    const Rank from = leader(node_ - direction());
    std::vector<Rank> to = members_;
    if (s < nodes_ - 2) to.insert(to.begin(), leader(node_ + direction()));
    builder_.step(leader(node_), {&from, 1}, {}, part(Buffer::output, s), to);
  }
  Rank leader(int node) const { return (node + nodes_) % nodes_ * local_; }
  int direction() const { return channel_ % 2 == 0 ? 1 : -1; }
  Chunks part(Buffer buffer, int s) const {
    const int index = ((node_ - direction() * s) % nodes_ + nodes_) % nodes_;
    return {buffer, static_cast<uint32_t>(index) * channels_ + channel_, 1};
  }

  schedule::Builder& builder_;
  int local_;
  int nodes_;
  int node_;
  uint32_t channels_;
  uint32_t channel_;
  std::vector<Rank> members_;
};

// From the root, or to it, along the leaders; in the root's node the root leads.
Tree chain_of_leaders(const Shape& shape, bool backwards) {
  const int local = shape.grid[0];
  const int nodes = shape.grid[1];
  const auto node = [&](int hops) { return (shape.root / local + (backwards ? nodes - hops : hops)) % nodes; };
  const auto leader = [&](int hops) { return hops % nodes == 0 ? shape.root : node(hops) * local; };
  Tree tree(shape.ranks);
  for (int hops = 1; hops < nodes; ++hops) {
    if (shape.collective == Collective::broadcast) tree.add(leader(hops - 1), leader(hops));
    if (shape.collective == Collective::reduce) tree.add(leader(hops + 1), leader(hops));
  }
  for (Tree::Node& n : tree.nodes) n.place = static_cast<uint32_t>(n.children.size());
  for (int hops = 0; hops < nodes; ++hops) {
    for (Rank rank = node(hops) * local; rank < (node(hops) + 1) * local; ++rank) {
      if (rank != leader(hops)) tree.add(leader(hops), rank);
    }
  }
  return tree;
}

}  // namespace

schedule::Schedule leaders(const Shape& asked) {
  Shape shape = asked;
  if (shape.ranks == 1) shape.grid = {1, 1};
  if (rooted(shape.collective)) {
    std::vector<Tree> chains;
    for (uint32_t c = 0; c < shape.channels; ++c) chains.push_back(chain_of_leaders(shape, c % 2 == 1));
    return along_trees("leaders", shape, chains);
  }
  const auto parts = static_cast<uint32_t>(shape.grid[1]);
  schedule::Builder builder("leaders", {shape.collective, shape.ranks, shape.root, shape.channels * parts}, shape.channels, 2);
  if (shape.ordered) builder.ordered();
  for (uint32_t c = 0; c < shape.channels; ++c) {
    for (int node = 0; node < shape.grid[1]; ++node) Node(builder, shape, node, c).write();
  }
  return std::move(builder).build();
}

}  // namespace gyre::topo
