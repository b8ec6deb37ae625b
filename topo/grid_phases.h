// What bucket.h writes for a grid, phase by phase, and the ways through it by formula. Private to profile_grid.cpp.
#pragma once
#include <vector>

#include "topo/placed_grid.h"

namespace gyre::topo {

class GridPhases {
 public:
  GridPhases(const PlacedGrid&, Collective, const std::vector<Dimension>&);

  size_t size() const { return phases_.size(); }
  const Phase& operator[](size_t at) const { return phases_[at]; }
  /// The step that ends the reduce-scatter of the last dimension begins its all-gather.
  bool joined(size_t at) const { return at > 0 && !phases_[at].reduces && phases_[at - 1].reduces; }
  /// A gathering rank copies its own block as it sends that.
  bool copies_own(size_t at) const { return at == 0 && !phases_[at].reduces; }
  bool uses(size_t at, size_t link) const;
  /// Of one connection, in all phases.
  int64_t messages(size_t at) const;

  /// The longest way through all phases.
  Tally path(Longest measure) const { return path(0, size(), measure); }
  /// What precedes the first and follows the last message over such links.
  Tally around_port(size_t link) const;

 private:
  Tally path(size_t first, size_t last, Longest) const;
  Tally ring(size_t at, Longest) const;
  Tally direct(size_t at, Longest) const;

  std::vector<Phase> phases_;
  std::vector<LineLinks> lines_;  // [phase]
};

}  // namespace gyre::topo
