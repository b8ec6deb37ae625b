#include "topo/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace gyre::topo {
namespace {

Error senseless(std::string what) { return Error{Code::invalid_argument, "graph: " + std::move(what)}; }

Status check(std::string_view of, std::string_view what, double value) {
  if (std::isfinite(value) && value >= 0) return {};
  return senseless(fmt::format("{} of {} is {}; it must be a number, 0 or more", what, of, value));
}

Status check(const schedule::LinkClass& link) {
  GYRE_TRY(check(link.name, "alpha", link.alpha));
  GYRE_TRY(check(link.name, "beta", link.beta));
  return check(link.name, "overhead", link.overhead);
}

// The ranks of a node take its `per_node` things in turn; 0: one each.
std::vector<uint32_t> shared(const std::vector<int>& node_of, int nodes, int per_node) {
  if (per_node == 0) return {};
  std::vector<uint32_t> next(static_cast<size_t>(nodes));
  std::vector<uint32_t> out;
  out.reserve(node_of.size());
  const auto count = static_cast<uint32_t>(per_node);
  for (const int node : node_of) out.push_back(static_cast<uint32_t>(node) * count + next[static_cast<size_t>(node)]++ % count);
  return out;
}

}  // namespace

schedule::RankPairs missing_pairs(std::span<const LinkOverride> links) {
  schedule::RankPairs pairs;
  for (const LinkOverride& link : links) {
    if (link.missing) pairs.emplace_back(link.a, link.b);
  }
  return pairs;
}

int Graph::nodes() const { return node_of.empty() ? 0 : 1 + *std::max_element(node_of.begin(), node_of.end()); }

Graph uniform(int ranks, const schedule::LinkClass& link, const schedule::RankCosts& costs) {
  return clusters(1, ranks, link, link, costs);
}

Graph clusters(int nodes, int per_node, const schedule::LinkClass& local, const schedule::LinkClass& network,
               const schedule::RankCosts& costs) {
  Graph graph;
  for (int rank = 0; rank < nodes * per_node; ++rank) graph.node_of.push_back(rank / per_node);
  graph.local = local;
  graph.network = network;
  graph.costs = costs;
  return graph;
}

Result<schedule::Network> network(const Graph& graph) {
  if (graph.node_of.empty()) return senseless("no ranks");
  for (const int node : graph.node_of) {
    if (node < 0 || node >= graph.ranks()) return senseless(fmt::format("node {} for {} ranks", node, graph.ranks()));
  }
  GYRE_TRY(check(graph.local));
  GYRE_TRY(check(graph.network));
  GYRE_TRY(check("a rank", "gamma", graph.costs.gamma));
  GYRE_TRY(check("a rank", "copy", graph.costs.copy));
  GYRE_TRY(check("a rank", "step", graph.costs.step));
  if (graph.nics_per_node < 0) return senseless(fmt::format("{} NICs on a node", graph.nics_per_node));
  if (graph.processors_per_node < 0) return senseless(fmt::format("{} processors on a node", graph.processors_per_node));

  schedule::Network out;
  out.ranks = graph.ranks();
  out.classes = {graph.local, graph.network};
  out.inside = 0;
  out.between = 1;
  out.node_of = graph.node_of;
  out.costs = graph.costs;
  out.classes[1].port_of = shared(graph.node_of, graph.nodes(), graph.nics_per_node);
  out.processor_of = shared(graph.node_of, graph.nodes(), graph.processors_per_node);
  for (const LinkOverride& link : graph.overrides) {
    for (const Rank rank : std::array{link.a, link.b}) {
      if (rank < 0 || rank >= out.ranks) return senseless(fmt::format("a link of rank {} among {} ranks", rank, out.ranks));
    }
    if (link.a == link.b) return senseless(fmt::format("a link from rank {} to itself", link.a));
    GYRE_TRY(check(fmt::format("the link between ranks {} and {}", link.a, link.b), "the factor", link.slower));
    out.exceptions[std::minmax(link.a, link.b)] = {link.slower, link.missing};
  }
  return out;
}

}  // namespace gyre::topo
