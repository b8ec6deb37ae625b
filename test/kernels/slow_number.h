// Half, bfloat16 and the 8-bit floats once more, from their definitions and without care for speed, to test kernels/ against. A
// pattern is read with ldexp; a number is rounded by looking for its two neighbours among all patterns. Shares nothing with kernels/.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace gyre::test {

struct Format {
  unsigned width, mantissa_bits;
  int bias;
  uint32_t largest;   // pattern of the largest finite number
  bool has_infinity;  // one above it
  bool saturates;
};
inline constexpr Format half_format{16, 10, 15, 0x7bff, true, false};
inline constexpr Format bfloat16_format{16, 7, 127, 0x7f7f, true, false};
inline constexpr Format e4m3_format{8, 3, 7, 0x7e, false, true};
inline constexpr Format e5m2_format{8, 2, 15, 0x7b, true, true};

class SlowNumbers {
 public:
  explicit SlowNumbers(const Format& format) : format_(format) {
    for (uint32_t pattern = 0; pattern <= format.largest; ++pattern) magnitudes_.push_back(finite(pattern));
  }

  double value(uint32_t pattern) const {
    const uint32_t sign = 1U << (format_.width - 1);
    const uint32_t magnitude = pattern & (sign - 1);
    double result = std::numeric_limits<double>::quiet_NaN();
    if (magnitude <= format_.largest)
      result = magnitudes_[magnitude];
    else if (format_.has_infinity && magnitude == format_.largest + 1)
      result = std::numeric_limits<double>::infinity();
    return (pattern & sign) != 0 ? -result : result;
  }

  /// The pattern nearest to x, ties to even.
  uint32_t nearest(double x) const {
    const uint32_t sign = std::signbit(x) ? 1U << (format_.width - 1) : 0;
    if (std::isnan(x)) return sign | ((1U << (format_.width - 1)) - 1);
    return sign | nearest_magnitude(std::fabs(x));
  }

 private:
  double finite(uint32_t pattern) const {
    const uint32_t mantissa = pattern & ((1U << format_.mantissa_bits) - 1);
    const auto exponent = static_cast<int>(pattern >> format_.mantissa_bits);
    const auto digits = static_cast<double>(exponent == 0 ? mantissa : mantissa + (1U << format_.mantissa_bits));
    return std::ldexp(digits, std::max(exponent, 1) - format_.bias - static_cast<int>(format_.mantissa_bits));
  }

  uint32_t nearest_magnitude(double x) const {
    const uint32_t largest = format_.largest;
    if (x >= magnitudes_[largest]) {
      const double half_gap = (magnitudes_[largest] - magnitudes_[largest - 1]) / 2;
      return format_.saturates || x < magnitudes_[largest] + half_gap ? largest : largest + 1;
    }
    const auto above = std::upper_bound(magnitudes_.begin(), magnitudes_.end(), x);
    const auto upper = static_cast<uint32_t>(above - magnitudes_.begin());
    const uint32_t lower = upper - 1;
    const double to_lower = x - magnitudes_[lower];
    const double to_upper = magnitudes_[upper] - x;
    if (to_lower == to_upper) return lower % 2 == 0 ? lower : upper;
    return to_lower < to_upper ? lower : upper;
  }

  Format format_;
  std::vector<double> magnitudes_;
};

inline const SlowNumbers& slow_half() {
  static const SlowNumbers numbers(half_format);
  return numbers;
}
inline const SlowNumbers& slow_bfloat16() {
  static const SlowNumbers numbers(bfloat16_format);
  return numbers;
}
inline const SlowNumbers& slow_e4m3() {
  static const SlowNumbers numbers(e4m3_format);
  return numbers;
}
inline const SlowNumbers& slow_e5m2() {
  static const SlowNumbers numbers(e5m2_format);
  return numbers;
}

}  // namespace gyre::test
