// What is asked of an algorithm.
#pragma once
#include <string>
#include <vector>

#include "base/types.h"

namespace gyre::topo {

struct Shape {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  uint32_t channels = 1;
  Rank root = 0;  ///< of the rooted collectives
  /// Extents of the grid of ranks, the fastest first, so that rank = x + extent[0] * (y + extent[1] * …): for families that work along
  /// dimensions, and {ranks of a node, nodes} for the hierarchical ones. Empty: the family's own choice.
  std::vector<int> grid;
  /// Sums are to be those of the canonical tree (schedule/canonical.h). A family does what it can; whether that suffices says
  /// topo::order().
  bool ordered = false;
};

/// "all_reduce for 8 ranks (4x2), 2 channels, root 3": for messages and drawings; says only what matters to the collective.
std::string text(const Shape&);

}  // namespace gyre::topo
