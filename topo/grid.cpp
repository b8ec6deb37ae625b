#include "topo/grid.h"

namespace gyre::topo {

std::vector<int> prime_factors(int ranks) {
  std::vector<int> factors;
  for (int factor = 2; factor <= ranks / factor; ++factor) {
    for (; ranks % factor == 0; ranks /= factor) factors.push_back(factor);
  }
  if (ranks > 1) factors.push_back(ranks);
  return factors;
}

std::vector<int> most_square(int ranks) {
  int smaller = 1;
  for (int extent = 2; extent <= ranks / extent; ++extent) {
    if (ranks % extent == 0) smaller = extent;
  }
  std::vector<int> extents;
  for (const int extent : {ranks / smaller, smaller}) {
    if (extent > 1) extents.push_back(extent);
  }
  return extents;
}

std::vector<Dimension> along(const std::vector<int>& extents, Exchange exchange) {
  std::vector<Dimension> dimensions;
  dimensions.reserve(extents.size());
  for (const int extent : extents) dimensions.push_back({extent, exchange});
  return dimensions;
}

}  // namespace gyre::topo
