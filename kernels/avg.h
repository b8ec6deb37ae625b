// The parts of a pre-multiplied sum on one element, and of an average, which is one in floating point. Floats: each rank's input is
// multiplied by a T, of averages T(1/n), on its way into the sum, with a fused multiply-add rounded once, as NCCL's kernels do. Integers:
// products wrap as sums do; the wrapped sum of an average is divided at the end.
#pragma once
#include "kernels/op.h"

namespace gyre::kernels {

/// p + r, rounded to odd: an inexact sum is cut and its last bit set. Rounded to a type with at least two bits less afterwards, it
/// gives what one rounding of the exact sum would give.
template <class Bits, class F>
GYRE_INLINE F odd_sum(F p, F r) {
  constexpr int sign_bit = 8 * sizeof(Bits) - 1;
  constexpr Bits all_but_sign = static_cast<Bits>(~Bits{0}) >> 1;
  const F sum = p + r;
  const F r_taken = sum - p;
  const F error = (p - (sum - r_taken)) + (r - r_taken);  // exactly what the rounding of `sum` lost
  const auto bits = __builtin_bit_cast(Bits, sum);
  const auto error_bits = __builtin_bit_cast(Bits, error);
  const bool finite = (bits & all_but_sign) < Order<F>::top;
  const bool inexact = (error_bits & all_but_sign) != 0;
  const Bits away_from_zero = (bits ^ error_bits) >> sign_bit;  // 1: `sum` was rounded up in magnitude
  const Bits odd = (bits - away_from_zero) | 1U;
  return __builtin_bit_cast(F, (finite & inexact) ? odd : bits);
}

/// A double that was rounded to odd, cut to a float that is rounded to odd. Among float's subnormals the last conversion rounds to
/// nearest; bfloat16's products have no bits there that could make a tie of what was none.
GYRE_INLINE float odd_float(double value) {
  constexpr uint64_t lost = (uint64_t{1} << 29) - 1;
  const auto bits = __builtin_bit_cast(uint64_t, value);
  const uint64_t odd = (bits & ~lost) | (((bits & lost) + lost) & ~lost);  // sets bit 29 if any lower one is set
  return static_cast<float>(__builtin_bit_cast(double, odd));
}

/// What the scalar of T is multiplied in.
template <class T>
struct Scalar {
  using Type = float;
};
template <>
struct Scalar<double> {
  using Type = double;
};
/// Integers are given as unsigned.
template <class T>
concept Whole = T(-1)
> T(0);
template <Whole T>
struct Scalar<T> {
  using Type = T;
};

/// x * s, rounded to T: what the first sender sends.
struct Scale {
  template <class T>
  GYRE_INLINE T operator()(T x, typename Scalar<T>::Type s) const {
    if constexpr (Small<T>)
      return narrow<T>(widen(x) * s);
    else
      return static_cast<T>(x * s);
  }
};

/// x * s + received: what every later one makes of its input and of what came.
struct ScaleSum {
  template <Whole T>
  GYRE_INLINE T operator()(T x, T received, T s) const {
    return static_cast<T>(x * s + received);
  }
  GYRE_INLINE float operator()(float x, float received, float s) const { return __builtin_fmaf(x, s, received); }
  GYRE_INLINE double operator()(double x, double received, double s) const { return __builtin_fma(x, s, received); }
  GYRE_INLINE Half operator()(Half x, Half received, float s) const {
    return narrow<Half>(odd_sum<uint32_t>(widen(x) * s, widen(received)));  // the product of two halves is exact in float
  }
  GYRE_INLINE Bfloat16 operator()(Bfloat16 x, Bfloat16 received, float s) const {
    const double product = static_cast<double>(widen(x)) * static_cast<double>(s);  // may leave float's range
    return narrow<Bfloat16>(odd_float(odd_sum<uint64_t>(product, static_cast<double>(widen(received)))));
  }
  template <Small8 T>
  GYRE_INLINE T operator()(T x, T received, float s) const {
    return Sum{}(Scale{}(x, s), received);  // twice rounded, as NCCL has it
  }
};

/// x / n, truncated toward zero. Up to 32 bits the quotient of two doubles is far enough from the next integer to be exact when cut,
/// and, unlike an integer division, it is vectorised. n must be at least 1.
struct Divide {
  uint64_t n;

  GYRE_INLINE int8_t operator()(int8_t x) const { return static_cast<int8_t>(static_cast<float>(x) / static_cast<float>(n)); }
  GYRE_INLINE uint8_t operator()(uint8_t x) const { return static_cast<uint8_t>(static_cast<float>(x) / static_cast<float>(n)); }
  GYRE_INLINE int32_t operator()(int32_t x) const { return static_cast<int32_t>(static_cast<double>(x) / static_cast<double>(n)); }
  GYRE_INLINE uint32_t operator()(uint32_t x) const { return static_cast<uint32_t>(static_cast<double>(x) / static_cast<double>(n)); }
  GYRE_INLINE uint64_t operator()(uint64_t x) const { return x / n; }
  GYRE_INLINE int64_t operator()(int64_t x) const {
    const auto bits = static_cast<uint64_t>(x);
    return static_cast<int64_t>(x < 0 ? 0 - (0 - bits) / n : bits / n);
  }
};

}  // namespace gyre::kernels
