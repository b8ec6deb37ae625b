// A kernel that stays for all steps of a collective: what it is told, and which there are. Plain data, without CUDA.
#pragma once
#include <array>
#include <cstdint>
#include <type_traits>

#include "base/types.h"
#include "kernels/table.h"

namespace gyre::kernels {

/// What all blocks do next.
struct StayItem {
  /// multiply: by the scalar; of pre-multiplied sums and averages of floats only.
  enum class What : uint64_t { copy, multiply, reduce };

  uint64_t ticket;  ///< for which it is; a kernel that finds another one's leaves
  What what;
  StepArgs step;  ///< up to three sources and two destinations; those that are absent are null
};
static_assert(sizeof(StayItem) == 80 && std::is_trivially_copyable_v<StayItem>);

/// A flag that others look at lies on a line of its own.
struct alignas(128) BlockFlag {
  uint64_t value;
};

/// Blocks of a kernel that stays, at most.
inline constexpr unsigned most_stay_blocks = 8;

// A kernel in a CUDA graph is launched many times, with the same arguments, when nobody on the host is told. So it asks: each launch says
// at the communicator's door that it has begun, and waits until the host has assigned it tickets of its own, counted through all
// launches. No flag is ever reset, and no launch depends on the one before, since a block knows its launches by counting them, in a word
// that is also a lock: launches of two instances of a graph at a time come one after another, block by block. All is pinned memory.

/// A collective in a graph. The GPU's, but for the line of `assigned`.
struct ReplaySlot {
  static constexpr uint64_t nothing = ~uint64_t{0};

  alignas(64) uint64_t turns[most_stay_blocks];    ///< twice the launches that have left, odd while one is there; not for the host
  alignas(64) uint64_t left[most_stay_blocks];     ///< launches that are done with all but this
  alignas(64) uint64_t granted[most_stay_blocks];  ///< for all threads of a block: the first ticket, or `nothing`
  alignas(64) uint64_t assigned;                   ///< launches so far that may go on, the last of them
  uint64_t first;                                  ///< from this ticket on
};

/// Where kernels say that they have begun, in the order in which they have.
struct ReplayDoor {
  /// ended: the communicator was, which a launch must not pass over in silence, whether or not it had been assigned something.
  enum State : uint64_t { open, let_go, ended };
  static constexpr uint64_t ring = 1024;  ///< more than a GPU has kernels at a time
  struct Start {
    uint64_t id;
    uint64_t number;  ///< from 1, of all starts
  };

  alignas(128) uint64_t state;
  alignas(128) uint64_t starts_made;  ///< the GPU's alone
  alignas(128) Start starts[ring];
};

/// Items are tickets first to end - 1, each at its number modulo `ring`, a power of two. All pointers are to pinned memory. A gate that
/// opens for more than has been written lets the kernel leave at the first ticket without an item. With a door it says there that it has
/// begun; with a slot, too, its tickets are those that it is assigned, and `end` is how many.
struct StayArgs {
  const StayItem* items;
  uint64_t ring;
  const uint64_t* gate;  ///< what lies there: tickets below this may begin
  BlockFlag* ended;      ///< by block: its part of tickets below this is done
  uint64_t first, end;
  ReplayDoor* door = nullptr;
  ReplaySlot* slot = nullptr;
  uint64_t id = 0;  ///< that it gives at the door
};

using StayKernel = void (*)(StayArgs);

/// The kernel that stays for collectives of this type and operation. An item without an own part has the scalar 1, with which a
/// pre-multiplied sum is a sum, and so is an average that is not to be divided yet.
StayKernel stay_kernel_of(DataType, ReduceOp);

/// By operation.
using StayRow = std::array<StayKernel, every_reduce_op_count>;
#define GYRE_STAY_ROW(type) extern const StayRow type##_stays;
GYRE_STEP_TYPES(GYRE_STAY_ROW)
#undef GYRE_STAY_ROW

}  // namespace gyre::kernels
