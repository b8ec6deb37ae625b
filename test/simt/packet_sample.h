// Two ranks' kernels that leave packets for each other, in small; and what can be wrong with them, to see whether that is found.
#pragma once
#include <cstdint>
#include <vector>

#include "test/simt/cuda.h"
// The keywords come first.
#include "kernels/packet_kernel.h"

namespace gyre::simt {

enum class PacketFault { none, flag_first, one_buffer };

struct PacketSample {
  static constexpr uint32_t calls = 40;
  static constexpr size_t threads = 64;

  /// [rank][buffer][thread]
  kernels::Packet packets[2][2][threads]{};
  uint32_t wrong[2][threads]{};  ///< calls

  kernels::Packet& place(unsigned rank, uint32_t call, PacketFault fault) {
    return packets[rank][fault == PacketFault::one_buffer ? 0 : call % 2][threadIdx.x];
  }
};

/// As two stores, of which the first is seen before the second.
inline void store_apart(kernels::Packet* to, const kernels::Packet& packet) {
  using Word [[gnu::may_alias]] = uint32_t;
  for (size_t i = 0; i < 2; ++i) {
    auto* const data = reinterpret_cast<Word*>(&to->halves[i]);
    __atomic_store_n(data + 1, static_cast<uint32_t>(packet.halves[i] >> 32), __ATOMIC_RELAXED);
    kernels::let_others_run();
    *data = static_cast<uint32_t>(packet.halves[i]);
  }
}

/// A block is a rank; what a thread leaves in a call the other rank's same thread takes.
template <PacketFault fault>
void exchange(PacketSample& sample) {
  const unsigned rank = blockIdx.x;
  for (uint32_t call = 1; call <= PacketSample::calls; ++call) {
    const auto packet = [&](unsigned of) { return kernels::packet_of(call * 10 + of, call * 100 + threadIdx.x, call); };
    if constexpr (fault == PacketFault::flag_first)
      store_apart(&sample.place(rank, call, fault), packet(rank));
    else
      kernels::store_packet(&sample.place(rank, call, fault), packet(rank));
    if (rank == 1) kernels::let_others_run();  // the slower one
    const unsigned other = 1 - rank;
    kernels::Packet came = kernels::load_packet(&sample.place(other, call, fault));
    // A later call's is not waited for, which would be for ever.
    for (; came.halves[0] >> 32 < call || came.halves[1] >> 32 < call; came = kernels::load_packet(&sample.place(other, call, fault)))
      kernels::relax();
    const kernels::Packet wanted = packet(other);
    if (came.halves[0] != wanted.halves[0] || came.halves[1] != wanted.halves[1]) ++sample.wrong[rank][threadIdx.x];
  }
}

/// True when each took what the other had left, in each call.
template <PacketFault fault>
bool packets_are_right(const Grid&) {
  PacketSample sample;
  launch({2, PacketSample::threads, 0}, [&] { exchange<fault>(sample); });
  for (const auto& rank : sample.wrong) {
    for (const uint32_t wrong : rank) {
      if (wrong != 0) return false;
    }
  }
  return true;
}

}  // namespace gyre::simt
