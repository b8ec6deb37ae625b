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

/// Items are tickets first to end - 1, each at its number modulo `ring`, a power of two. All pointers are to pinned memory. A gate that
/// opens for more than has been written lets the kernel leave at the first ticket without an item.
struct StayArgs {
  const StayItem* items;
  uint64_t ring;
  const uint64_t* gate;  ///< what lies there: tickets below this may begin
  BlockFlag* ended;      ///< by block: its part of tickets below this is done
  uint64_t first, end;
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
