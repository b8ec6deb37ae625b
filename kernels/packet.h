// All-reduces of little as one kernel on each rank, with no host between ranks: each leaves its part in packets, whose flags say that their
// data is there, in memory of its own GPU, where the others' kernels look for them and reduce all parts in one order. Nobody writes to
// another's memory, which may be gone, nor resets a flag: each call has its own, and two buffers take turns. Who has all of a call's parts
// knows that the others have left the call before it, and so that nobody reads the buffer that it writes next. What a kernel is told; plain
// data, without CUDA.
#pragma once
#include <array>
#include <cstdint>
#include <type_traits>

#include "kernels/mem.h"
#include "kernels/stay.h"

namespace gyre::kernels {

/// A rank's part of a call. The word says what it has called: of another call nobody takes a sum for his.
struct PacketBuffer {
  static constexpr size_t most_bytes = size_t{64} << 10;  ///< what a pack for each thread of the most blocks makes
  static constexpr size_t most_packs = most_bytes / sizeof(Pack);

  alignas(128) Packet word;
  alignas(128) Packet lower[most_packs], upper[most_packs];  ///< halves of packs
};
/// What a rank has for its parts, which clear_packets() makes ready.
struct PacketBuffers {
  PacketBuffer at[2];  ///< a call's flag modulo 2
};

/// What the host says to these kernels, and they to it. Pinned memory.
struct PacketDoor {
  /// held: none ends any more. let_go: all do, without what they wait for.
  enum State : uint64_t { open, held, let_go };

  alignas(128) uint64_t state;
  alignas(128) uint64_t begun;  ///< tickets below this have
};

/// A GPU's place for each on one host.
inline constexpr unsigned most_packet_ranks = 8;

struct PacketArgs {
  const void* input;
  void* output;  ///< may be the input, else they do not overlap
  PacketBuffers* own;
  const PacketBuffers* parts[most_packet_ranks];  ///< of all ranks, this one's among them, in the order of the reduction
  uint32_t ranks;                                 ///< 0: only clears what is this rank's own
  uint32_t flag;                                  ///< of this call, on all ranks; one more than the last one's, and never 0
  size_t count;                                   ///< elements
  uint64_t scalar;                                ///< as in StepArgs; a part is multiplied before it is sent
  uint64_t word;
  PacketDoor* door;
  uint64_t ticket;
  BlockFlag* ended;      ///< where it says that it has …
  uint32_t ended_flags;  ///< … in so many
};
static_assert(std::is_trivially_copyable_v<PacketArgs>);

using PacketKernel = void (*)(PacketArgs);

PacketKernel packet_kernel_of(DataType, ReduceOp);
/// Bytes that a rank's kernel reads and writes for so many: its input and its packets, twice as long, all parts and the result.
constexpr size_t packet_traffic(size_t bytes, size_t ranks) { return bytes * (1 + 2 + 2 * ranks + 1); }
/// Blocks that so many bytes are worth: a pack for each thread, up to `most`.
unsigned packet_blocks(size_t bytes, unsigned most);

/// By operation.
using PacketRow = std::array<PacketKernel, every_reduce_op_count>;
#define GYRE_PACKET_ROW(type) extern const PacketRow type##_packets;
GYRE_STEP_TYPES(GYRE_PACKET_ROW)
#undef GYRE_PACKET_ROW

}  // namespace gyre::kernels
