// What the links between ranks' GPUs decide of a communicator: in which orders its channels go around its ranks, and by which ports a host
// goes to others. A pure function of what the ranks say of their GPUs, and what they made of it is compared all the same.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/facts.h"

namespace gyre::engine {

struct GpuChannels {
  topo::ChannelOrders orders;      ///< none: not all ranks know where their GPUs are
  std::vector<std::string> ports;  ///< near GPUs that have ranks, on any host; none: it does not matter by which
};

/// Called by all ranks. Error: a rank's words are none of a GPU's, or ranks made different channels of them; all ranks have it.
Result<GpuChannels> gpu_channels(transport::Bootstrap&, const std::vector<Facts>&);
/// Called by all ranks, each with a digest of what must be the same. Error: says which rank differs.
Status same_channels(transport::Bootstrap&, uint64_t digest);

}  // namespace gyre::engine
