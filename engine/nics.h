// What the ports by which verbs joins hosts carry, and with them its typical price. A connection is spread over all ports of a rank, and
// the ranks of a host go by the same ones, so that these are like one NIC of their speed together.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/facts.h"
#include "topo/cost.h"

namespace gyre::engine {

struct Nics {
  size_t ports = 0;        ///< of a rank
  int64_t mbit_per_s = 0;  ///< of these together
  int per_node = 1;        ///< how often a host has that: more than once where its ranks go by different ports
};
/// The least of all ranks, and of all hosts. `near`: what open_worker() takes as ports. None: not every rank knows of a port, and of all
/// of them how fast they are.
std::optional<Nics> nics(const std::vector<Facts>&, std::span<const std::string> near);

/// With the links between hosts as fast as these NICs, and as many, where they cost what the constants compiled in have as typical, which
/// nobody has measured on these hosts.
Result<topo::Costs> by_ports(topo::Costs, const std::optional<Nics>&);

}  // namespace gyre::engine
