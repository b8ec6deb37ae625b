// The number types that C++ lacks, as storage and exact conversions from and to float: half, bfloat16 and the two 8-bit floats. Plain
// integer arithmetic with selects in place of branches, so that g++ and clang vectorise a loop over them for any processor; neither
// compiler has _Float16 everywhere. Rounding is to nearest, ties to even; subnormals are exact; a NaN becomes the GPU's canonical NaN.
// Everything is always_inline: this header is compiled with different instruction sets, and one shared copy of a function would run
// on processors that it was not compiled for.
#pragma once
#include <cstddef>
#include <cstdint>

// nvcc takes these functions for the GPU, too.
#if defined(__CUDACC__)
#define GYRE_INLINE __host__ __device__ __forceinline__
#else
#define GYRE_INLINE [[gnu::always_inline]] inline
#endif

namespace gyre::kernels {

// A type's constants: `limit` is where a magnitude is cut off before rounding (infinity is reached from there, or, for the saturating
// 8-bit types, the largest number; bfloat16 needs none); `first_special` is the lowest pattern without sign that is not a finite number.
struct Half {
  static constexpr int mantissa_bits = 10, bias = 15;
  static constexpr float limit = 65536.0F;
  static constexpr uint16_t first_special = 0x7c00, nan = 0x7fff, sign = 0x8000;
  uint16_t bits;
};
struct Bfloat16 {
  static constexpr int mantissa_bits = 7, bias = 127;
  static constexpr uint16_t first_special = 0x7f80, nan = 0x7fff, sign = 0x8000;
  uint16_t bits;
};
/// No infinity; its place is taken by numbers, and only the last pattern is NaN.
struct Float8e4m3 {
  static constexpr int mantissa_bits = 3, bias = 7;
  static constexpr float limit = 448.0F;
  static constexpr uint8_t first_special = 0x7f, nan = 0x7f, sign = 0x80;
  uint8_t bits;
};
/// Has an infinity, which can be read but is never the result of a rounding.
struct Float8e5m2 {
  static constexpr int mantissa_bits = 2, bias = 15;
  static constexpr float limit = 57344.0F;
  static constexpr uint8_t first_special = 0x7c, nan = 0x7f, sign = 0x80;
  uint8_t bits;
};

/// One of the four types above.
template <class T>
concept Small = requires {
  T::mantissa_bits;
};
/// One of the 8-bit ones, which saturate.
template <class T>
concept Small8 = Small<T> && sizeof(T) == 1;

template <class A, class B>
inline constexpr bool same_type = false;
template <class A>
inline constexpr bool same_type<A, A> = true;

inline constexpr uint32_t float_infinity = 0x7f800000;

GYRE_INLINE uint32_t float_bits(float value) { return __builtin_bit_cast(uint32_t, value); }
GYRE_INLINE float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

template <Small T>
inline constexpr uint32_t smallest_normal = static_cast<uint32_t>(128 - T::bias) << 23;

/// The same number as a float.
template <Small T>
GYRE_INLINE float widen(T value) {
  const uint32_t bits = value.bits;
  constexpr int up = 23 - T::mantissa_bits;
  if constexpr (T::bias == 127) {
    return float_of(bits << up);
  } else {
    const uint32_t magnitude = bits & (T::sign - 1U);
    // A subnormal gets the exponent and with it the leading one of the smallest normal number, which is then taken off again. The
    // subtraction is done for all: g++ does not vectorise a conditional one, which might trap.
    const uint32_t excess = magnitude < (1U << T::mantissa_bits) ? smallest_normal<T> : 0;
    const uint32_t exponent = excess != 0 ? smallest_normal<T> : static_cast<uint32_t>(127 - T::bias) << 23;
    uint32_t result = float_bits(float_of((magnitude << up) + exponent) - float_of(excess));
    result |= magnitude >= T::first_special ? float_infinity : 0;
    return float_of(result | ((bits & T::sign) << (32 - 8 * sizeof(T))));
  }
}

/// A power of two (as a float's bits) whose last bit weighs as much as T's last bit does at `magnitude`: when the two are added, the
/// processor rounds where T does.
template <Small T>
GYRE_INLINE uint32_t rounding_power(uint32_t magnitude) {
  const uint32_t normal = magnitude > smallest_normal<T> ? magnitude : smallest_normal<T>;
  return (normal & float_infinity) + (static_cast<uint32_t>(23 - T::mantissa_bits) << 23);
}

/// The nearest bfloat16 in the upper half, what was rounded away below. Infinity stays, since its last bit is even.
GYRE_INLINE uint32_t rounded_upper(float value) {
  const uint32_t bits = float_bits(value);
  const uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  return value != value ? bits | 0x7fff0000U : rounded;
}

/// The nearest number of type T.
template <Small T>
GYRE_INLINE T narrow(float value) {
  if constexpr (T::bias == 127) {
    return T{static_cast<uint16_t>(rounded_upper(value) >> 16)};
  } else {
    constexpr int down = 23 - T::mantissa_bits;
    const uint32_t limit = float_bits(T::limit);  // were it constexpr, nvcc 13.0 would break down
    const uint32_t bits = float_bits(value);
    const uint32_t magnitude = bits & 0x7fffffffU;
    const uint32_t cut = magnitude < limit ? magnitude : limit;
    const uint32_t power = rounding_power<T>(cut);
    const uint32_t last_bits = float_bits(float_of(cut) + float_of(power)) - power;  // a normal number's leading one included
    uint32_t result = (power >> down) - (rounding_power<T>(0) >> down) + last_bits;
    result |= magnitude > float_infinity ? T::nan : 0U;  // has all bits set; a choice would make g++ put the addition into a branch
    return T{static_cast<decltype(T::bits)>(result | ((bits >> (32 - 8 * sizeof(T))) & T::sign))};
  }
}

}  // namespace gyre::kernels
