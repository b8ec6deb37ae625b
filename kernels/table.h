// All step kernels, by type, operation and shape: a table that is looked up, without a switch. Kernels have the types of a host's functions
// here, since only their addresses are of use to a host, as keys of launches. It must not know: CUDA.
#pragma once
#include <array>

#include "base/types.h"
#include "kernels/step.h"

namespace gyre::kernels {

using StepKernel = void (*)(StepArgs);

/// The kernel of a step. A pre-multiplied sum, and an average of floats, which is one (its scalar: avg_scalar()), multiplies its first
/// source; a step without an own part is a sum. An average of integers is a sum at every hop but the last, which divides. One source is
/// only copied, or multiplied. 8-bit floats need a GPU of compute capability 9.0, as NCCL's do.
StepKernel step_kernel_of(DataType, ReduceOp, Shape);

/// Blocks that a step of so many bytes is worth: one for each 32 KiB, up to `most`.
unsigned step_blocks(size_t bytes, unsigned most);

using ShapeRow = std::array<StepKernel, shape_count>;
/// By operation.
using StepRow = std::array<ShapeRow, every_reduce_op_count>;

// X(type): the rows, which the .cu files define.
#define GYRE_STEP_TYPES(X) \
  X(int8) X(uint8) X(int32) X(uint32) X(int64) X(uint64) X(float16) X(float32) X(float64) X(bfloat16) X(float8e4m3) X(float8e5m2)
#define GYRE_STEP_ROW(type) extern const StepRow type##_steps;
GYRE_STEP_TYPES(GYRE_STEP_ROW)
#undef GYRE_STEP_ROW

}  // namespace gyre::kernels
