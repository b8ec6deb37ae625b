// Seconds for a Profile on a machine, in constant time. The price is the largest of what can hold a run up: the way of a round's slices
// from end to end, the busiest port of each kind, the busiest processor, the connection that waits for credits most. Only sums, products,
// quotients and comparisons of doubles, and no contraction, so that ranks on different kinds of processors price alike.
#pragma once
#include <optional>
#include <string_view>

#include "schedule/cut.h"
#include "schedule/network.h"
#include "topo/direct_bounds.h"
#include "topo/measured.h"
#include "topo/profile.h"

namespace gyre::topo {

/// What things cost where the ranks of a host reach each other's memory (topo/direct_cost.h).
struct DirectCosts {
  double meeting = 0;      ///< seconds until a rank has seen the others
  double peer = 0;         ///< seconds of that for every rank that it waits for
  double leaving = 0;      ///< seconds until all are done with a rank's memory
  double shown = 0;        ///< seconds per byte shown to others, or read where they have shown it
  double cached = 0;       ///< seconds per byte read or written of ranks' buffers, where all of these fit the caches
  double cache_bytes = 0;  ///< what fits
  double memory = 0;       ///< seconds per byte where they do not
  double attaching = 0;    ///< seconds to begin a copy from another process's ordinary memory
  double attached = 0;     ///< seconds per byte of it, beside reading and writing
};

/// What an all-reduce costs in which each rank leaves its part in packets for the others' GPUs (kernels/packet.h).
struct PacketCosts {
  double latency = 0;  ///< seconds until a rank has seen the others
  double part = 0;     ///< seconds per byte of each rank's part
};

/// What things cost on a machine. Links by kind (topo/profile.h); their `port_of` is not looked at.
struct Costs {
  std::array<schedule::LinkClass, link_kinds> link;
  schedule::RankCosts rank;
  int nics_per_node = 0;                        ///< shared by the node's ranks; 0: one per rank
  int processors_per_node = 0;                  ///< shared by the node's ranks; 0: one per rank
  std::optional<DirectCosts> direct{};          ///< none: nobody has measured it
  std::vector<Measured> measured{};             ///< of calls on it
  std::optional<DirectBounds> direct_bounds{};  ///< none: ranks do not reach each other's memory there
  std::optional<PacketCosts> packets{};         ///< none: GPUs leave each other none there
};

/// Seconds, and of what they are made.
struct Price {
  double seconds = 0;
  double latency = 0;                      ///< of messages and steps, whatever their size
  std::array<double, link_kinds> bytes{};  ///< on links of each kind
  double computing = 0;                    ///< reducing and copying
  double busiest = 0;                      ///< seconds that the busiest rank works meanwhile
  double shared = 0;                       ///< seconds of work on the processors that ranks share, if these were never idle
  double apart = 0;                        ///< seconds, if ranks that share processors had their own
  int64_t hops = 0;                        ///< messages that follow one another, of one slice
  std::string_view limit;                  ///< what holds the run up
};

/// What blocks of `block_bytes` cost (schedule/layout.h), cut as the engine cuts them.
Price price(const Profile&, const Costs&, double block_bytes, const schedule::Cutting&);
/// The same for a cut that was made already.
Price price(const Profile&, const Costs&, double block_bytes, const schedule::Cut&, uint32_t credits = schedule::Cutting{}.credits);

}  // namespace gyre::topo
