// Operations on arrays of bfloat16 as in bfloat16_pair.h, by 32 elements with both halves rounded at once, which a compiler does not find:
// of arrays in the first-level cache two thirds of the time. Only included where the compiler may use AVX-512.
#pragma once
#include <immintrin.h>

#include "kernels/bfloat16_pair.h"

namespace gyre::kernels {

// Vectors: of pairs, of their halves, and of one half of each as a float.
using Words [[gnu::vector_size(64)]] = uint32_t;
using HalfWords [[gnu::vector_size(64)]] = uint16_t;
using Floats [[gnu::vector_size(64)]] = float;
inline constexpr size_t bfloat16_block = 32;

GYRE_INLINE Words load_words(const Bfloat16* from) {
  Words all;
  __builtin_memcpy(&all, from, sizeof all);
  return all;
}

GYRE_INLINE Floats floats_of(Words bits) { return __builtin_bit_cast(Floats, bits); }

/// Each float rounded to the nearest bfloat16. What is not a number keeps its upper bits where the lower are 0, as they are of all that
/// sums and products of bfloat16 come to.
GYRE_INLINE HalfWords nearest(Floats upper, Floats lower) {
  const auto up = __builtin_bit_cast(Words, upper), low = __builtin_bit_cast(Words, lower);
  const auto kept = __builtin_bit_cast(HalfWords, (up & 0xffff0000U) | (low >> 16));
  const auto lost = __builtin_bit_cast(HalfWords, (up << 16) | (low & 0xffffU));
  const HalfWords most = uint16_t{0x8000} - (kept & uint16_t{1});  // that is rounded down: a half to even
  return kept - __builtin_bit_cast(HalfWords, lost > most);        // true is -1
}

/// The bits that rounded_upper() sets of what is not a number, 0 for numbers.
GYRE_INLINE HalfWords not_numbers(Floats upper, Floats lower) {
  const auto up = __builtin_bit_cast(Words, upper) & 0x7fffffffU, low = __builtin_bit_cast(Words, lower) & 0x7fffffffU;
  const auto up_is = __builtin_bit_cast(Words, up > float_infinity), low_is = __builtin_bit_cast(Words, low > float_infinity);
  return __builtin_bit_cast(HalfWords, (up_is & 0x7fff0000U) | (low_is & 0x7fffU));
}

/// out = op(a, b), other too where it is not null; op takes and gives floats or vectors of them. Both may be a and b.
template <class Op>
GYRE_INLINE void each_block(Bfloat16* out, Bfloat16* other, const Bfloat16* a, const Bfloat16* b, size_t count, Op op) {
  size_t i = 0;
  for (; i + bfloat16_block <= count; i += bfloat16_block) {
    const Words x = load_words(a + i), y = load_words(b + i);
    const Floats upper = op(floats_of(x & 0xffff0000U), floats_of(y & 0xffff0000U));
    const Floats lower = op(floats_of(x << 16), floats_of(y << 16));
    HalfWords rounded = nearest(upper, lower);
    if (_mm512_cmp_ps_mask(upper, lower, _CMP_UNORD_Q) != 0) [[unlikely]]
      rounded |= not_numbers(upper, lower);
    __builtin_memcpy(out + i, &rounded, sizeof rounded);
    if (other != nullptr) __builtin_memcpy(other + i, &rounded, sizeof rounded);
  }
  each_pair(out + i, a + i, b + i, count - i, op);
  if (other != nullptr) __builtin_memcpy(other + i, out + i, (count - i) * sizeof *out);
}

}  // namespace gyre::kernels
