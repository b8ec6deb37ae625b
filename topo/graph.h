// The machine as people describe it: nodes, ranks on them, NICs, two kinds of links, and what is unlike the rest. network() makes of it
// what schedules are timed and priced on.
#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "schedule/network.h"
#include "schedule/relayed.h"

namespace gyre::topo {

/// A link that is slower by a factor, or missing; both directions.
struct LinkOverride {
  Rank a = 0;
  Rank b = 0;
  double slower = 1;
  bool missing = false;
};
/// Those of them that are missing.
schedule::RankPairs missing_pairs(std::span<const LinkOverride>);

struct Graph {
  std::vector<int> node_of;     ///< [rank]: nodes are numbered from 0
  schedule::LinkClass local;    ///< joins the ranks of a node; the ports are network()'s to fill in
  schedule::LinkClass network;  ///< joins ranks of different nodes
  schedule::RankCosts costs;
  int nics_per_node = 0;        ///< shared by the node's ranks in turn; 0: one per rank
  int processors_per_node = 0;  ///< shared by the node's ranks in turn; 0: one per rank
  std::vector<LinkOverride> overrides;

  int ranks() const { return static_cast<int>(node_of.size()); }
  int nodes() const;
};

/// All ranks on one node, joined by `link`.
Graph uniform(int ranks, const schedule::LinkClass& link, const schedule::RankCosts& costs = {});
/// Rank r is on node r / per_node.
Graph clusters(int nodes, int per_node, const schedule::LinkClass& local, const schedule::LinkClass& network,
               const schedule::RankCosts& costs = {});

/// Error: invalid_argument where the description makes no sense, naming what.
Result<schedule::Network> network(const Graph&);

}  // namespace gyre::topo
