// The rings of a job's channels over ranks that each have a GPU: from one GPU to the next as job_channels.h goes, and on a GPU that several
// ranks share from one of these to the next. A pure function of what all ranks say: all of them have the same rings.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/relayed.h"
#include "topo/channel_orders.h"
#include "topo/gpu_row.h"

namespace gyre::topo {

struct GpuRank {
  std::string_view host;
  GpuRow gpu;
};

struct GpuRings {
  ChannelOrders orders;  ///< a host's ranks follow each other, hosts in the order of their first ranks or as host_order() has them
  uint64_t digest = 0;   ///< of the channels over GPUs, and of who is on which
};

/// By rank. `missing`: ranks that do not reach each other; rings pass them by on a host, and hosts of which some do not, where an order is
/// found that does. Error: as job_channels().
Result<GpuRings> gpu_rings(std::span<const GpuRank>, const schedule::RankPairs& missing = {});
/// The ports near GPUs that have ranks, of all hosts together, by the length and order of their names: a host that took fewer than another
/// would deal with ports of other rails.
std::vector<std::string> rails_near(std::span<const GpuRank>);
/// The same, but that of a rank's own GPU first.
std::vector<std::string> rails_from(std::span<const GpuRank>, Rank);

}  // namespace gyre::topo
