// What the links between ranks' GPUs decide of a communicator: by which ports a host goes to others (topo::rails_near()), and in which
// orders its channels go around its ranks. A pure function of what the ranks say of their GPUs and of whom nothing joins, and what they
// made of it is compared all the same.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/facts.h"
#include "topo/gpu_rings.h"

namespace gyre::engine {

/// By rank, for as long as the facts are there; none: not all ranks know where their GPUs are. Error: a rank's words are none of a GPU's;
/// all ranks have it.
Result<std::vector<topo::GpuRank>> gpu_ranks(const std::vector<Facts>&);
/// Called by all ranks, with what gpu_ranks() is and the pairs that nothing joins. Error: ranks made different channels of it; all have it.
Result<topo::ChannelOrders> gpu_channels(transport::Bootstrap&, std::span<const topo::GpuRank>, const schedule::RankPairs& missing);
/// Called by all ranks, each with a digest of what must be the same. Error: says which rank differs.
Status same_channels(transport::Bootstrap&, uint64_t digest);

}  // namespace gyre::engine
