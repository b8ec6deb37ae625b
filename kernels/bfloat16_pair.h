// Operations on arrays of bfloat16 by pairs: two neighbours in 32 bits, each of which is the upper half of a float as it stands or after a
// shift. So no element moves to another lane of a vector, as widening and narrowing would make it, on any processor: twice as fast.
#pragma once
#include "kernels/number.h"
#include "kernels/reduce_isa.h"

namespace gyre::kernels {

using Pair [[gnu::may_alias, gnu::aligned(alignof(Bfloat16))]] = uint32_t;

GYRE_INLINE float upper(uint32_t pair) { return float_of(pair & 0xffff0000U); }
GYRE_INLINE float lower(uint32_t pair) { return float_of(pair << 16); }
GYRE_INLINE uint32_t pair_of(float upper, float lower) { return (rounded_upper(upper) & 0xffff0000U) | (rounded_upper(lower) >> 16); }

/// out = op(a, b), op taking and giving floats; out may be a or b.
template <class Op>
GYRE_INLINE void each_pair(Bfloat16* out, const Bfloat16* a, const Bfloat16* b, size_t count, Op op) {
  auto* to = reinterpret_cast<Pair*>(out);
  const auto* left = reinterpret_cast<const Pair*>(a);
  const auto* right = reinterpret_cast<const Pair*>(b);
  GYRE_INDEPENDENT
  for (size_t i = 0; i < count / 2; ++i) to[i] = pair_of(op(upper(left[i]), upper(right[i])), op(lower(left[i]), lower(right[i])));
  if (count % 2 != 0) out[count - 1] = narrow<Bfloat16>(op(widen(a[count - 1]), widen(b[count - 1])));
}

}  // namespace gyre::kernels
