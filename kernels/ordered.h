// Steps of ordered numerics (kernels/canonical.h) as kernels, of the types whose partial sums are wider: 16- and 8-bit floats, which are
// widened as they are read and rounded where the whole is written. One kernel for all forms of sources and destinations, which are flags
// beside the factor; wider types are computed by the kernels of step.h, a multiplication by one of its own. Plain data, without CUDA.
#pragma once
#include <bit>
#include <cstdint>

#include "kernels/stay.h"

namespace gyre::kernels {

/// In StepArgs::scalar: the lower half has the bits of the float by which parts are multiplied, the upper one these.
enum OrderedFlag : uint32_t {
  first_is_partial = 1,  ///< sources[0] has floats, else elements
  second_is_partial = 2,
  first_multiplied = 4,
  second_multiplied = 8,
  to_partial = 16,  ///< destinations get floats, else elements
};
constexpr uint64_t ordered_scalar(float factor, uint32_t flags) { return uint64_t{flags} << 32 | std::bit_cast<uint32_t>(factor); }

/// One source or two, to one destination or two; a destination of a source's width may be that source, else it overlaps none. Of such a
/// type, and a sum (averages and pre-multiplied ones are) or a product.
StepKernel ordered_kernel_of(DataType, ReduceOp);
/// The kernel that stays for such steps, and copies of elements.
StayKernel ordered_stay_kernel_of(DataType, ReduceOp);

/// Of a type, for sums and for products.
struct OrderedRow {
  StepKernel steps[2];
  StayKernel stays[2];
};
// X(type): those types.
#define GYRE_ORDERED_TYPES(X) X(float16) X(bfloat16) X(float8e4m3) X(float8e5m2)
#define GYRE_ORDERED_ROW(type) extern const OrderedRow type##_ordered;
GYRE_ORDERED_TYPES(GYRE_ORDERED_ROW)
#undef GYRE_ORDERED_ROW

}  // namespace gyre::kernels
