// Every shape that the families have a schedule for, for a number of ranks: what tests of all schedules go through.
#pragma once
#include <algorithm>
#include <random>
#include <vector>

#include "topo/algorithms.h"
#include "topo/grid.h"

namespace gyre::test {

/// Every root up to 16 ranks; above, the first, the last and a seeded sample between them.
inline std::vector<Rank> roots(int ranks, Collective collective) {
  if (!rooted(collective)) return {0};
  std::vector<Rank> all;
  for (Rank root = 0; root < ranks; ++root) all.push_back(root);
  if (ranks <= 16) return all;
  std::shuffle(all.begin() + 1, all.end() - 1, std::mt19937(static_cast<unsigned>(ranks)));
  all.erase(all.begin() + 4, all.end() - 1);
  return all;
}

/// The family's own grid (empty), two extents in every way, and the prime factors in both orders.
inline std::vector<std::vector<int>> grids(int ranks) {
  std::vector<std::vector<int>> all{{}};
  for (int fast = 1; fast <= ranks; ++fast) {
    if (ranks % fast == 0) all.push_back({fast, ranks / fast});
  }
  const auto factors = topo::prime_factors(ranks);
  if (factors.size() > 2) {
    all.push_back(factors);
    all.emplace_back(factors.rbegin(), factors.rend());
  }
  return all;
}

/// The families that a grid changes.
inline bool looks_at_grid(const topo::Family& family) { return family.grid != topo::GridUse::none; }

/// Calls f(const Family&, const Shape&) for every family, collective, grid and root that is not refused, with one channel.
template <class F>
void each_shape(int ranks, F&& f) {
  for (const topo::Family& family : topo::families()) {
    for (const Collective collective : all_collectives()) {
      for (const auto& grid : looks_at_grid(family) ? grids(ranks) : std::vector<std::vector<int>>{{}}) {
        for (const Rank root : roots(ranks, collective)) {
          const topo::Shape shape{collective, ranks, 1, root, grid};
          if (topo::refusal(family, shape).empty()) f(family, shape);
        }
      }
    }
  }
}

}  // namespace gyre::test
