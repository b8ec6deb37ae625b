// Operations on arrays of halves with the processor's own conversions (F16C), several times faster than number.h's, which are left
// for the odd elements at the end. Only included where the compiler may use F16C. The float loop in the middle is
// vectorised by the compiler.
#pragma once
#include <immintrin.h>

#include "kernels/number.h"

namespace gyre::kernels {

inline constexpr size_t half_block = 32;

// A block is stored in pieces as large as the compiler's own vectors: a load that spans two smaller stores has to wait for memory.
#if defined(__AVX512F__)
inline constexpr __mmask16 all_lanes = 0xffff;  // the forms without a mask make g++ 12 warn of its own header

GYRE_INLINE void widen_block(float* out, const Half* in) {
  for (size_t i = 0; i < half_block; i += 16) {
    _mm512_storeu_ps(out + i, _mm512_maskz_cvtph_ps(all_lanes, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i))));
  }
}

GYRE_INLINE void narrow_block(Half* out, const float* in) {
  for (size_t i = 0; i < half_block; i += 16) {
    const __m512 values = _mm512_loadu_ps(in + i);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_maskz_cvtps_ph(all_lanes, values, _MM_FROUND_TO_NEAREST_INT));
  }
}
#else
GYRE_INLINE void widen_block(float* out, const Half* in) {
  for (size_t i = 0; i < half_block; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  }
}

GYRE_INLINE void narrow_block(Half* out, const float* in) {
  for (size_t i = 0; i < half_block; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  }
}
#endif

/// out = op(a, b), op taking and giving floats; out may be a or b.
template <class Op>
GYRE_INLINE void each_half(Half* out, const Half* a, const Half* b, size_t count, Op op) {
  size_t i = 0;
  for (; i + half_block <= count; i += half_block) {
    float x[half_block], y[half_block];
    widen_block(x, a + i);
    widen_block(y, b + i);
    for (size_t k = 0; k < half_block; ++k) x[k] = op(x[k], y[k]);
    narrow_block(out + i, x);
  }
  for (; i < count; ++i) out[i] = narrow<Half>(op(widen(a[i]), widen(b[i])));
}

}  // namespace gyre::kernels
