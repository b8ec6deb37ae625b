// NCCL's arithmetic on one element: the functors that every kernel is made of. One operation is rounded once to the element's type, so
// a reduction depends on its order only. Integers wrap; the signed ones are given here as unsigned, except to Max, Min and Divide.
// The small floats compute in float and round again: for + and * a type with 2p + 2 bits of precision gives the p bits of the narrower
// one as if rounded once. NCCL takes 8-bit floats through half, which has that many bits too, so the result is the same (a test tries
// all pairs); they saturate, and never become infinite.
#pragma once
#include "kernels/number.h"

namespace gyre::kernels {

struct Sum {
  template <class T>
  GYRE_INLINE T operator()(T a, T b) const {
    if constexpr (Small<T>)
      return narrow<T>(widen(a) + widen(b));
    else
      return static_cast<T>(a + b);
  }
};

struct Prod {
  template <class T>
  GYRE_INLINE T operator()(T a, T b) const {
    if constexpr (Small<T>)
      return narrow<T>(widen(a) * widen(b));
    else
      return static_cast<T>(a * b);
  }
};

/// A number's place among all numbers of its type, as a signed integer: -0 is just below +0, and a NaN is at `nan_place`.
template <class Place, class Bits>
GYRE_INLINE Place place(Bits bits, Bits infinity, Place nan_place) {
  constexpr int sign_bit = 8 * sizeof(Bits) - 1;
  constexpr auto all_but_sign = static_cast<Place>(static_cast<Bits>(~Bits{0}) >> 1);
  const auto value = static_cast<Place>(bits);
  const auto ordered = static_cast<Place>(value ^ ((value >> sign_bit) & all_but_sign));
  return static_cast<Place>(value & all_but_sign) > static_cast<Place>(infinity) ? nan_place : ordered;
}
template <class Place>
inline constexpr auto lowest_place = static_cast<Place>(Place{1} << (8 * sizeof(Place) - 1));

// With which integers a type's bits are compared, and its highest pattern that is not a NaN.
template <class T>
struct Order;
template <>
struct Order<float> {
  using Bits = uint32_t;
  using Place = int32_t;
  static constexpr Bits top = 0x7f800000;
};
template <>
struct Order<double> {
  using Bits = uint64_t;
  using Place = int64_t;
  static constexpr Bits top = 0x7ff0000000000000;
};
template <>
struct Order<Half> {
  using Bits = uint16_t;
  using Place = int16_t;
  static constexpr Bits top = 0x7c00;
};
template <>
struct Order<Bfloat16> {
  using Bits = uint16_t;
  using Place = int16_t;
  static constexpr Bits top = 0x7f80;
};
template <>
struct Order<Float8e4m3> {
  using Bits = uint8_t;
  using Place = int8_t;
  static constexpr Bits top = 0x7e;
};
template <>
struct Order<Float8e5m2> {
  using Bits = uint8_t;
  using Place = int8_t;
  static constexpr Bits top = 0x7c;
};
template <class T>
concept Floating = requires {
  Order<T>::top;
};

/// The larger or smaller of two floats: a NaN loses against a number, and -0 < +0 (fmax and fmin promise neither).
template <bool larger, Floating T>
GYRE_INLINE T extreme(T a, T b) {
  using Bits = typename Order<T>::Bits;
  using Place = typename Order<T>::Place;
  constexpr Place worst = larger ? lowest_place<Place> : static_cast<Place>(~lowest_place<Place>);
  const auto a_bits = __builtin_bit_cast(Bits, a);
  const auto b_bits = __builtin_bit_cast(Bits, b);
  const auto a_place = place<Place, Bits>(a_bits, Order<T>::top, worst);
  const auto b_place = place<Place, Bits>(b_bits, Order<T>::top, worst);
  Bits result = (larger ? a_place > b_place : a_place < b_place) ? a_bits : b_bits;
  if constexpr (Small8<T>) {  // back from half with saturation: an infinity becomes the largest number
    const bool infinite = T::first_special != T::nan && (result & (T::sign - 1)) == T::first_special;
    result = static_cast<Bits>(infinite ? result - 1 : result);
  }
  return __builtin_bit_cast(T, result);
}

struct Max {
  template <class T>
  GYRE_INLINE T operator()(T a, T b) const {
    if constexpr (Floating<T>)
      return extreme<true>(a, b);
    else
      return a > b ? a : b;
  }
};

struct Min {
  template <class T>
  GYRE_INLINE T operator()(T a, T b) const {
    if constexpr (Floating<T>)
      return extreme<false>(a, b);
    else
      return a < b ? a : b;
  }
};

}  // namespace gyre::kernels
