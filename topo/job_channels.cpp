#include "topo/job_channels.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "topo/algorithms.h"

namespace gyre::topo {
namespace {

Status check_nodes(std::span<const JobNode> nodes) {
  schedule::RankOrder all;
  for (size_t node = 0; node < nodes.size(); ++node) {
    const auto& [links, ranks] = nodes[node];
    if (ranks.empty() || static_cast<int>(ranks.size()) != links.gpus)
      return Error{Code::invalid_argument, fmt::format("node {} has {} ranks for {} GPUs", node, ranks.size(), links.gpus)};
    all.insert(all.end(), ranks.begin(), ranks.end());
  }
  std::ranges::sort(all);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != static_cast<Rank>(rank)) return Error{Code::invalid_argument, fmt::format("no node, or two, have rank {}", rank)};
  }
  return all.empty() ? Status(Error{Code::invalid_argument, "no nodes"}) : Status();
}

// The nodes' links without those that are missing.
std::vector<NodeLinks> links_without(std::span<const JobNode> nodes, std::span<const LinkOverride> missing) {
  std::vector<NodeLinks> all;
  std::unordered_map<Rank, std::pair<size_t, int>> at;  // node, GPU
  for (const auto& [links, ranks] : nodes) {
    for (int gpu = 0; gpu < links.gpus; ++gpu) at[ranks[static_cast<size_t>(gpu)]] = {all.size(), gpu};
    all.push_back(links);
  }
  for (const LinkOverride& link : missing) {
    const auto a = at.find(link.a), b = at.find(link.b);
    if (!link.missing || a == at.end() || b == at.end() || a->second.first != b->second.first) continue;
    NodeLinks& links = all[a->second.first];
    links.missing.resize(links.distance.size());
    for (const size_t pair : {links.at(a->second.second, b->second.second), links.at(b->second.second, a->second.second)})
      links.missing[pair] = true, links.direct[pair] = 0;
  }
  return all;
}

// By which rails channels pass each node. A node comes in and goes out by one rail if two of its GPUs are near it; else rails change in
// pairs, from a GPU near the one to one near the other, and back in the next node, so that between two nodes none is left. The last of an
// odd number of nodes leaves by the rail that the first comes in by.
class Rails {
 public:
  explicit Rails(std::span<const NodeLinks> nodes) : nodes_(static_cast<int>(nodes.size())) {
    size_t fewest = most_channels;
    for (const NodeLinks& links : nodes) {
      fewest = std::min(fewest, links.rails.size());
      for (const Rail& rail : links.rails) swaps_ |= links.gpus > 1 && rail.near.size() < 2;
    }
    count_ = static_cast<int>(fewest);
  }

  std::vector<Passage> passages(int node) const {
    std::vector<Passage> all;
    for (int channel = 0; channel < count_; ++channel) {
      const bool last = node + 1 == nodes_;
      const int in = node % 2 == 0 ? channel : swapped(channel);
      all.push_back({in, last ? channel : node % 2 == 0 ? swapped(channel) : channel});
    }
    if (count_ == 0) all.push_back({-1, -1});
    return all;
  }

 private:
  int swapped(int rail) const { return swaps_ && (rail ^ 1) < count_ ? rail ^ 1 : rail; }

  int nodes_;
  int count_ = 0;
  bool swaps_ = false;
};

// Nodes that are alike have what was found for the first of them: to look may take milliseconds.
class Searched {
 public:
  const std::vector<Channel>& paths(const NodeLinks& links, const std::vector<Passage>& passages) {
    const auto known = std::ranges::find_if(known_, [&](const Known& k) { return k.passages == passages && *k.links == links; });
    if (known != known_.end()) return known->channels;
    const int steps = most_search_steps / static_cast<int>(known_.size() + 1);  // many that are unlike take not much longer in all
    return known_.emplace_back(Known{&links, passages, paths_through(links, passages, steps)}).channels;
  }

 private:
  struct Known {
    const NodeLinks* links;
    std::vector<Passage> passages;
    std::vector<Channel> channels;
  };
  std::vector<Known> known_;
};

// Between nodes a double tree's, of the chains' first ranks; inside, the chain.
Tree tree_of(std::span<const JobNode> nodes, const JobChannel& channel, bool second) {
  std::vector<NodeChain> chains;
  auto next = channel.chain.begin();
  for (const JobNode& node : nodes) {
    const auto first = std::exchange(next, next + static_cast<std::ptrdiff_t>(node.ranks.size()));
    chains.push_back({{first, next}, 0});
  }
  return with_chains(binary_tree({Collective::all_reduce, static_cast<int>(nodes.size()), 1, 0, {}}, second), chains);
}

}  // namespace

std::vector<JobNode> equal_nodes(const NodeLinks& links, int count) {
  std::vector<JobNode> nodes;
  for (int node = 0; node < count; ++node) {
    nodes.push_back({links, {}});
    for (int gpu = 0; gpu < links.gpus; ++gpu) nodes.back().ranks.push_back(node * links.gpus + gpu);
  }
  return nodes;
}

Result<std::vector<JobChannel>> job_channels(std::span<const JobNode> nodes, std::span<const LinkOverride> missing) {
  GYRE_TRY(check_nodes(nodes));
  const std::vector<NodeLinks> links = links_without(nodes, missing);
  const Rails rails(links);
  Searched searched;
  std::vector<JobChannel> out;
  for (size_t node = 0; node < nodes.size(); ++node) {
    std::vector<Channel> found =
        nodes.size() == 1 ? rings_inside(links[0]) : searched.paths(links[node], rails.passages(static_cast<int>(node)));
    out.resize(found.size(), {{}, {}, {}, Tree(0)});
    for (size_t channel = 0; channel < found.size(); ++channel) {
      JobChannel& to = out[channel];
      const auto begins = static_cast<std::ptrdiff_t>(to.chain.size());
      for (const int gpu : found[channel].order) to.ring.push_back(nodes[node].ranks[static_cast<size_t>(gpu)]);
      to.chain.insert(to.chain.end(), to.ring.begin() + begins, to.ring.end());
      to.through.push_back(std::move(found[channel]));
      const int rail = to.through[0].in;
      if (to.through[node].in != rail && to.through[node].out == rail) std::reverse(to.chain.begin() + begins, to.chain.end());
    }
  }
  for (size_t channel = 0; channel < out.size(); ++channel) out[channel].tree = tree_of(nodes, out[channel], channel % 2 == 1);
  return out;
}

uint64_t digest(std::span<const JobChannel> channels) {
  std::string text;
  for (const JobChannel& channel : channels) {
    text += fmt::format("{}", fmt::join(channel.ring, " "));
    for (const Channel& through : channel.through) text += fmt::format(";{} {}", through.in, through.out);
    for (const Tree::Node& node : channel.tree.nodes) text += fmt::format(",{}", node.parent);
    text += "\n";
  }
  return mix(fnv1a(text));
}

Result<schedule::Schedule> along_channels(std::string_view family, const Shape& shape, std::span<const JobChannel> channels,
                                          std::span<const LinkOverride> missing) {
  if (channels.size() != shape.channels || channels.empty() || channels[0].ring.size() != static_cast<size_t>(shape.ranks))
    return Error{Code::invalid_argument, fmt::format("{} along {} channels of {} ranks", text(shape), channels.size(),
                                                     channels.empty() ? 0 : channels[0].ring.size())};
  if (family == "tree") {
    std::vector<Tree> trees;
    for (const JobChannel& channel : channels) trees.push_back(channel.tree);
    return schedule::relayed(along_trees("tree", shape, trees), missing_pairs(missing));
  }
  if (family != "ring") return Error{Code::invalid_argument, fmt::format("{} along channels; ring and tree can be", family)};
  ChannelOrders rings;
  for (const JobChannel& channel : channels) rings.rings.push_back(channel.ring);
  Shape positions = shape;
  positions.root = 0;
  const schedule::Schedule ring = GYRE_TRY(make("ring", positions));
  return schedule::relayed(GYRE_TRY(schedule::renamed(ring, along_rings(rings, positions, shape.root))), missing_pairs(missing));
}

}  // namespace gyre::topo
