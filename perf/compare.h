// Two results of the same calls beside each other: the first's time over the second's, point by point. Pure, but for what it is given.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "perf/results.h"

namespace gyre::perf {

/// A point of both; indices into their points.
struct Paired {
  size_t before = 0;
  size_t after = 0;
  double before_us = 0;  ///< medians
  double after_us = 0;
  double ratio = 1;            ///< of the medians: above 1 the second is faster
  double least = 1, most = 1;  ///< that single measurements give
  bool repeated = false;       ///< there are several of one at least, so that least and most say something

  /// 1: faster whichever measurements are taken, -1: slower; 0: neither can be said.
  int beyond_spread() const { return !repeated ? 0 : least > 1 ? 1 : most < 1 ? -1 : 0; }
};

struct Comparison {
  std::vector<Paired> pairs;
  size_t only_before = 0;  ///< points that the other lacks
  size_t only_after = 0;
  std::vector<std::string> differences;  ///< of what does not forbid it: "machine.kernel: 6.1 and 6.2"
};

/// Error: they can't be compared, and in what they differ; or have no point in common.
Result<Comparison> compare(const Results& before, const Results& after);

/// Of positive numbers, at least one.
double geometric_mean(std::span<const double>);

}  // namespace gyre::perf
