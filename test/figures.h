// Figures that a program has measured: JSON lines on stdout, and again on stderr, for who looks on.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

namespace gyre::test {

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

inline void say(const nlohmann::json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", line.dump());
}

}  // namespace gyre::test
