// Which of a communicator's calls are an exchange of packets (kernels/packet.h), and what their kernels are told. It stands for a proven
// schedule, in which each rank sends all others its part and reduces all parts, and reduces in its order: so it has the same bits. It must
// not know: streams, what is under way.
#pragma once
#include <map>
#include <utility>
#include <vector>

#include "engine/plan.h"
#include "kernels/packet.h"

namespace gyre::engine {

/// The order in which such a schedule reduces ranks' parts, the same on all; empty: it does anything else.
std::vector<Rank> exchange_order(const schedule::Schedule&);

class DevicePackets {
 public:
  /// No calls are.
  DevicePackets() = default;
  /// `buffers`, by rank, and the salt as DeviceMemory has them.
  DevicePackets(Rank rank, std::vector<kernels::PacketBuffers*> buffers, uint64_t salt)
      : rank_(rank), buffers_(std::move(buffers)), salt_(salt) {}

  // All ranks call the same, so these say the same to all.
  /// This one is, or would be, were it not the first.
  bool carry(const Plan&);
  /// What the first such call must clear, and go by steps itself: where it ends, all ranks have cleared theirs. Null: it is not the first.
  kernels::PacketBuffers* first();
  /// What the next one's kernel is told by this. `word`: the call's.
  kernels::PacketArgs next(const Plan&, const Buffers&, uint64_t word);

 private:
  const std::vector<Rank>& order(const schedule::Schedule&);

  Rank rank_ = 0;
  std::vector<kernels::PacketBuffers*> buffers_;
  uint64_t salt_ = 0;
  bool cleared_ = false;
  uint32_t flag_ = 0;
  std::map<const schedule::Schedule*, std::vector<Rank>> orders_;
};

}  // namespace gyre::engine
