// Times as people read them, and where an axis of time has its marks.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

namespace gyre::schedule {

/// The unit in which `seconds` has one to three digits before the point.
struct TimeUnit {
  std::string_view name = "s";
  double seconds = 1;

  static TimeUnit of(double seconds) {
    for (const TimeUnit unit : {TimeUnit{"s", 1}, TimeUnit{"ms", 1e-3}, TimeUnit{"µs", 1e-6}}) {
      if (seconds >= unit.seconds) return unit;
    }
    return {"ns", 1e-9};
  }
};

/// "212 µs", "1.23 ms": three digits.
inline std::string time_text(double seconds) {
  const TimeUnit unit = TimeUnit::of(seconds);
  const double value = seconds / unit.seconds;
  return fmt::format("{:.{}f} {}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2, unit.name);
}

/// About `count` round times from 0 to `finish`.
inline std::vector<double> marks(double finish, int count) {
  if (finish <= 0) return {0};
  const double wanted = finish / count;
  const double power = std::pow(10, std::floor(std::log10(wanted)));
  double step = 10 * power;
  for (const double digit : {5, 2, 1}) {
    if (digit * power >= wanted * (1 - 1e-9)) step = digit * power;
  }
  std::vector<double> out;
  for (int i = 0; i * step <= finish * (1 + 1e-9); ++i) out.push_back(i * step);
  return out;
}

}  // namespace gyre::schedule
