// The machine that a schedule is timed on, as plain data: seconds and bytes, which link joins two ranks, which ports its bytes go
// through. Made by topo/graph.h or by a test; read by simulate.h, which plays it, and by topo/cost.h, which prices it. All costs zero but
// alpha and beta: the ideal machine of the formulas.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"

namespace gyre::schedule {

/// Links of one kind. A message of m bytes occupies the sender's port, outwards, and the receiver's, inwards, for m * beta, both at the
/// same time, and is there alpha later. A port is full duplex: its two directions do not hinder each other.
struct LinkClass {
  std::string name;
  double alpha = 0;     ///< seconds of latency of a message
  double beta = 0;      ///< seconds per byte in one direction of a port
  double overhead = 0;  ///< seconds of the rank's processor for each message that it sends or receives
  /// No ports: processors move the bytes, beta seconds for each. Through slots it is the sender's, which writes them; where the
  /// receiver is told the sender's address, it is the receiver's.
  bool by_processor = false;
  std::vector<uint32_t> port_of;  ///< [rank]; ranks of the same number share a port (a node's NIC). Empty: a port each

  uint32_t port(Rank rank) const { return port_of.empty() ? static_cast<uint32_t>(rank) : port_of[static_cast<size_t>(rank)]; }
};

/// What a rank's processor takes, beside the overheads and bytes of its links.
struct RankCosts {
  double gamma = 0;  ///< seconds per byte for each further operand of a reduction
  double copy = 0;   ///< seconds per byte written to the rank's own memory by a step that does not reduce
  double step = 0;   ///< seconds per step
};

/// A link unlike the others of its class; both directions.
struct LinkException {
  double factor = 1;  ///< of beta
  bool missing = false;
};

/// How a message gets from one rank to another.
struct Route {
  uint32_t link_class = 0;  ///< index into Network::classes
  double beta = 0;
};

struct Network {
  int ranks = 1;
  std::vector<LinkClass> classes;
  uint32_t inside = 0;       ///< the class that joins ranks of a node
  uint32_t between = 0;      ///< the class that joins ranks of different nodes
  std::vector<int> node_of;  ///< [rank]; empty: all are on one node
  RankCosts costs;
  std::vector<uint32_t> processor_of;                         ///< [rank]; ranks of the same number take turns. Empty: a processor each
  std::map<std::pair<Rank, Rank>, LinkException> exceptions;  ///< by the lower and the higher rank

  int node(Rank rank) const { return node_of.empty() ? 0 : node_of[static_cast<size_t>(rank)]; }
  uint32_t processor(Rank rank) const {
    return processor_of.empty() ? static_cast<uint32_t>(rank) : processor_of[static_cast<size_t>(rank)];
  }
  /// Empty: nothing joins the two.
  std::optional<Route> link(Rank from, Rank to) const {
    const uint32_t kind = node(from) == node(to) ? inside : between;
    const auto exception = exceptions.find({from < to ? from : to, from < to ? to : from});
    if (exception == exceptions.end()) return Route{kind, classes[kind].beta};
    if (exception->second.missing) return {};
    return Route{kind, classes[kind].beta * exception->second.factor};
  }
};

}  // namespace gyre::schedule
