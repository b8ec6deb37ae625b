#include "perf/topology_channels.h"

#include <fmt/format.h>

#include <algorithm>

#include "perf/topology_text.h"
#include "topo/job_channels.h"

namespace gyre::perf {
namespace {

using topo::Channel, topo::JobChannel, topo::NodeLinks, topo::Topology;

std::string line_of(const Topology& topology, const NodeLinks& links, const Channel& channel) {
  const std::vector<int> gpus = topology.all<topo::Gpu>();
  const auto rail = [&](int index) {
    const topo::Rail& at = links.rails[static_cast<size_t>(index)];
    return port_name(topology.port(at.nic, at.port));
  };
  std::vector<std::string> hops;
  if (channel.in >= 0) hops.push_back(rail(channel.in));
  for (const int gpu : channel.order) hops.push_back(gpu_name(topology, gpus[static_cast<size_t>(gpu)]));
  if (channel.out >= 0) hops.push_back(rail(channel.out));
  std::string out = fmt::format("{}", fmt::join(hops, " → "));
  if (channel.alone) out += "; NVLinks of its own";
  return out;
}

// Channels that are alike stand on one line.
std::string lines_of(const Topology& topology, const NodeLinks& links, const std::vector<JobChannel>& channels, size_t node) {
  std::string out;
  for (size_t first = 0, end = 0; first < channels.size(); first = end) {
    const std::string line = line_of(topology, links, channels[first].through[node]);
    while (end < channels.size() && line_of(topology, links, channels[end].through[node]) == line) ++end;
    const std::string numbers = end - first == 1 ? fmt::format("{}", first) : fmt::format("{} to {}", first, end - 1);
    out += fmt::format("  {:8} {}\n", numbers, line);
  }
  return out;
}

// Of the nodes, each by the rank that is first in the channel there.
std::string tree_between(const std::vector<JobChannel>& channels, size_t channel, int gpus) {
  const std::vector<topo::Tree::Node>& nodes = channels[channel].tree.nodes;
  std::vector<std::string> edges;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    const Rank parent = nodes[rank].parent;
    const Rank node = static_cast<Rank>(rank) / gpus;
    if (parent >= 0 && parent / gpus != node) edges.push_back(fmt::format("{}-{}", parent / gpus, node));
  }
  return fmt::format("{}", fmt::join(edges, " "));
}

}  // namespace

std::string topology_channels(const Topology& topology, int nodes) {
  const NodeLinks links = node_links(topology);
  if (links.gpus == 0) return "";
  const auto channels = topo::job_channels(topo::equal_nodes(links, nodes));
  if (!channels) return channels.error().what + "\n";
  if (nodes == 1) return "channels: rings, and chains of trees, over the GPUs\n" + lines_of(topology, links, *channels, 0);
  std::string out = fmt::format("channels over {} such nodes, through the first\n", nodes) + lines_of(topology, links, *channels, 0);
  out += "through the second\n" + lines_of(topology, links, *channels, 1);
  if (nodes % 2 == 1) out += "through the last\n" + lines_of(topology, links, *channels, static_cast<size_t>(nodes) - 1);
  constexpr int most_shown = 64;
  if (nodes > most_shown) return out;
  out += fmt::format("nodes that trees join: channels 0, 2, …: {}\n", tree_between(*channels, 0, links.gpus));
  if (channels->size() > 1) out += fmt::format("channels 1, 3, …: {}\n", tree_between(*channels, 1, links.gpus));
  return out;
}

}  // namespace gyre::perf
