// Seconds for a Profile on a machine, in constant time. The price is the largest of what can hold a run up: the way of one slice from
// end to end, the busiest port of each kind, the busiest processor, the connection that waits for credits most. Only sums, products,
// quotients and comparisons of doubles, and no contraction, so that ranks on different kinds of processors price alike.
#pragma once
#include <string_view>

#include "schedule/cut.h"
#include "schedule/network.h"
#include "topo/profile.h"

namespace gyre::topo {

/// What things cost on a machine. Links by kind (topo/profile.h); their `port_of` is not looked at.
struct Costs {
  std::array<schedule::LinkClass, link_kinds> link;
  schedule::RankCosts rank;
  int nics_per_node = 0;        ///< shared by the node's ranks; 0: one per rank
  int processors_per_node = 0;  ///< shared by the node's ranks; 0: one per rank
};

/// Seconds, and of what they are made.
struct Price {
  double seconds = 0;
  double latency = 0;                      ///< of messages and steps, whatever their size
  std::array<double, link_kinds> bytes{};  ///< on links of each kind
  double computing = 0;                    ///< reducing and copying
  std::string_view limit;                  ///< what holds the run up
};

/// What blocks of `block_bytes` cost (schedule/layout.h), cut as the engine cuts them.
Price price(const Profile&, const Costs&, double block_bytes, const schedule::Cutting&);
/// The same for a cut that was made already.
Price price(const Profile&, const Costs&, double block_bytes, const schedule::Cut&, uint32_t credits = schedule::Cutting{}.credits);

}  // namespace gyre::topo
