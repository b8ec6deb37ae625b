// Finds the positive numbers for which a function is least, by trying each a little larger and smaller in turn. For the handful of
// constants of a cost model, whose predictions are not smooth: no derivatives.
#pragma once
#include <cmath>
#include <vector>

namespace gyre::perf {

/// `at`: where to start, all positive. `error`: a function of such a vector. Ends where no factor of 1 % or more makes it less, or after
/// `most` evaluations.
template <class Error>
std::vector<double> search_least(std::vector<double> at, Error error, int most = 20000) {
  double least = error(at);
  for (double factor = 8; factor > 1.01 && most > 0;) {
    bool better = false;
    for (size_t i = 0; i < at.size(); ++i) {
      for (const double by : {factor, 1 / factor}) {
        std::vector<double> other = at;
        other[i] *= by;
        const double e = error(other);
        --most;
        if (e >= least) continue;
        least = e;
        at = std::move(other);
        better = true;
        break;
      }
    }
    if (!better) factor = std::sqrt(factor);
  }
  return at;
}

}  // namespace gyre::perf
