// NCCL's arithmetic on one element, for any type, on bit patterns: integers by 64-bit arithmetic, small floats by exact arithmetic in
// double followed by slow_number.h's rounding, float and double by the processor. What kernels/ is tested against.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/types.h"
#include "test/kernels/slow_number.h"

namespace gyre::test {

inline bool is_signed_integer(DataType type) { return type == DataType::int8 || type == DataType::int32 || type == DataType::int64; }

inline uint64_t pattern_mask(DataType type) { return ~uint64_t{0} >> (64 - 8 * size_of(type)); }

/// The value of a signed integer's pattern.
inline int64_t sign_extended(DataType type, uint64_t pattern) {
  const auto unused = static_cast<int>(64 - 8 * size_of(type));
  return static_cast<int64_t>(pattern << unused) >> unused;
}

inline const SlowNumbers& slow(DataType type) {
  switch (type) {
    case DataType::float16:
      return slow_half();
    case DataType::bfloat16:
      return slow_bfloat16();
    case DataType::float8e4m3:
      return slow_e4m3();
    default:
      return slow_e5m2();
  }
}

/// The value of a float's pattern.
inline double float_value(DataType type, uint64_t pattern) {
  if (type == DataType::float64) return std::bit_cast<double>(pattern);
  if (type == DataType::float32) return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(pattern)));
  return slow(type).value(static_cast<uint32_t>(pattern));
}

/// What an operation on a small type makes of its exact result.
inline uint64_t rounded(DataType type, double exact) {
  if (size_of(type) == 1) exact = slow_half().value(slow_half().nearest(exact));
  return slow(type).nearest(exact);
}

/// x + y where both have at most 22 bits: exact, except that a y too small to matter but for its sign is brought nearer to x, so that
/// the sum fits a double and still rounds the same way.
inline double sum_for_rounding(double x, double y) {
  if (x == 0 || y == 0 || !std::isfinite(x) || !std::isfinite(y)) return x + y;
  if (std::fabs(x) < std::fabs(y)) std::swap(x, y);
  if (std::ilogb(x) - std::ilogb(y) > 30) y = std::copysign(std::ldexp(1.0, std::ilogb(x) - 45), y);
  return x + y;
}

inline uint64_t pattern_of(float value) { return std::bit_cast<uint32_t>(value); }
inline uint64_t pattern_of(double value) { return std::bit_cast<uint64_t>(value); }

/// True where a comes before b: numbers by size, -0 before +0.
inline bool before(double a, double b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }

inline uint64_t reference_extreme(DataType type, bool larger, uint64_t a, uint64_t b) {
  if (is_integer(type)) {
    const bool a_first = is_signed_integer(type) ? sign_extended(type, a) < sign_extended(type, b) : a < b;
    return a_first == larger ? b : a;
  }
  const double x = float_value(type, a);
  const double y = float_value(type, b);
  uint64_t result = before(x, y) == larger ? b : a;
  if (std::isnan(x)) result = b;
  if (std::isnan(y)) result = a;
  return size_of(type) == 1 ? rounded(type, float_value(type, result)) : result;
}

/// a op b; avg: the sum.
inline uint64_t reference_combine(DataType type, ReduceOp op, uint64_t a, uint64_t b) {
  if (op == ReduceOp::max || op == ReduceOp::min) return reference_extreme(type, op == ReduceOp::max, a, b);
  const bool product = op == ReduceOp::prod;
  if (is_integer(type)) return (product ? a * b : a + b) & pattern_mask(type);
  if (type == DataType::float32) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(a));
    const auto y = std::bit_cast<float>(static_cast<uint32_t>(b));
    return pattern_of(product ? x * y : x + y);
  }
  const double x = float_value(type, a);
  const double y = float_value(type, b);
  if (type == DataType::float64) return pattern_of(product ? x * y : x + y);
  return rounded(type, product ? x * y : sum_for_rounding(x, y));
}

inline uint64_t reference_scale(DataType type, uint64_t x, double s) {
  const double value = float_value(type, x);
  if (type == DataType::float64) return pattern_of(value * s);
  if (type == DataType::float32) return pattern_of(static_cast<float>(value) * static_cast<float>(s));
  return rounded(type, value * s);
}

inline uint64_t reference_scale_combine(DataType type, uint64_t x, uint64_t received, double s) {
  const double value = float_value(type, x);
  const double sum = float_value(type, received);
  if (type == DataType::float64) return pattern_of(std::fma(value, s, sum));
  if (type == DataType::float32) return pattern_of(std::fma(static_cast<float>(value), static_cast<float>(s), static_cast<float>(sum)));
  if (size_of(type) == 1) return reference_combine(type, ReduceOp::sum, reference_scale(type, x, s), received);
  return rounded(type, sum_for_rounding(value * s, sum));
}

/// x times a scalar of these bits: what premul_sum makes of an input.
inline uint64_t reference_premultiply(DataType type, uint64_t x, uint64_t scalar) {
  if (is_integer(type)) return (x * scalar) & pattern_mask(type);
  return reference_scale(type, x, float_value(type, scalar));
}
inline uint64_t reference_premultiply_combine(DataType type, uint64_t x, uint64_t received, uint64_t scalar) {
  if (is_integer(type)) return (x * scalar + received) & pattern_mask(type);
  return reference_scale_combine(type, x, received, float_value(type, scalar));
}

/// Division by n, which must fit int64_t.
inline uint64_t reference_divide(DataType type, uint64_t x, uint64_t n) {
  if (!is_signed_integer(type)) return x / n;
  return static_cast<uint64_t>(sign_extended(type, x) / static_cast<int64_t>(n)) & pattern_mask(type);
}

/// Equal patterns, or two NaNs.
inline bool same_result(DataType type, uint64_t a, uint64_t b) {
  return a == b || (!is_integer(type) && std::isnan(float_value(type, a)) && std::isnan(float_value(type, b)));
}

}  // namespace gyre::test
