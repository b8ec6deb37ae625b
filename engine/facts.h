// What ranks tell each other before they connect.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "schedule/renamed.h"
#include "topo/channel_orders.h"
#include "topo/gpu_row.h"
#include "transport/bootstrap.h"
#include "transport/transport.h"

namespace gyre::engine {

struct Facts {
  std::string version;                         ///< profile_version: others choose otherwise
  std::string host;                            ///< ranks of equal text share memory and a network
  std::vector<uint64_t> processors;            ///< that it may run on, a bit each
  int numa = -1;                               ///< the NUMA node that has all of them; -1: none has
  std::vector<std::string> backends;           ///< transports that can be opened here, the best first
  std::vector<transport::Device::Port> ports;  ///< of these verbs': all that it can use
  std::string transport;
  size_t slot_bytes = 0;
  size_t slots = 0;
  size_t channels = 0;
  size_t memory_bytes = 0;  ///< 0: no bound
  std::string algorithm;
  std::string grid;
  std::string numerics;
  std::string constants;          ///< a digest of what ranks choose by
  bool slots_by_default = false;  ///< neither GYRE_SLOT_BYTES nor GYRE_SLOTS is set
  std::string gpu;                ///< topo::text(GpuRow); empty: it has no GPU, or does not know where that is
};

/// Facts::host of this process.
std::string own_host(const Config&);
/// The ranks of each host, by the hosts of all ranks; in the order of the hosts' first ranks.
std::vector<schedule::RankOrder> ranks_on_hosts(const std::vector<std::string>& hosts);
/// All hosts have equally many.
bool are_alike(const std::vector<schedule::RankOrder>& on_hosts);
/// Everybody's facts by rank. `constants`: Facts's. Error: ranks differ in a fact that must be equal; says which rank in what.
Result<std::vector<Facts>> exchange_facts(transport::Bootstrap&, const Config&, std::string constants,
                                          const std::optional<topo::GpuRow>& = {});
/// Where ranks are: those of a host in positions that follow each other, and among these those of a NUMA node.
struct Placed {
  std::vector<int> hosts;          ///< {ranks of a host, hosts} where all hosts have equally many; else empty
  schedule::RankOrder order;       ///< the rank at each position; empty: its number
  topo::ChannelOrders channels{};  ///< those of each channel, over GPUs; none: these are not known

  Rank position(Rank rank) const { return order.empty() ? rank : schedule::position_of(order, rank); }
};
/// `channels`: over GPUs, in the order of hosts; the first ring is everybody's order then.
Placed placed(const std::vector<Facts>&, const topo::ChannelOrders& channels = {});
/// How many processors this rank's host has for its ranks, whether these are more, and how many they are.
struct HostLoad {
  int processors = 0;
  bool crowded = false;
  int ranks = 1;
};
HostLoad host_load(const std::vector<Facts>&, Rank);

}  // namespace gyre::engine
