// A grid of ranks that are placed on nodes: over links of which kinds the ranks of a line deal with each other. Private to the profiles of
// what goes along lines.
#pragma once
#include <vector>

#include "topo/grid.h"
#include "topo/profile.h"

namespace gyre::topo {

/// One dimension, one way: what is exchanged along its lines.
struct Phase {
  Exchange exchange = Exchange::ring;
  bool reduces = false;
  int extent = 1;
  int weight = 1;      ///< positions from one coordinate of a line to the next
  int64_t chunks = 1;  ///< of a message
};

/// What a phase's lines look like from the position that has the most to do with other nodes.
struct LineLinks {
  std::array<int64_t, link_kinds> partners{};  ///< of a direct exchange
  int64_t border = 0;                          ///< of a ring: hops from one border of nodes to the next; 0: there is none
};

class PlacedGrid {
 public:
  /// `members`: the rank at each position; empty: its number.
  PlacedGrid(const Placement& placement, int positions, std::vector<Rank> members)
      : placement_(placement), positions_(positions), members_(std::move(members)) {}

  int positions() const { return positions_; }
  Rank member(int position) const { return members_.empty() ? position : members_[static_cast<size_t>(position)]; }
  const Placement& placement() const { return placement_; }

  /// Partners in direct exchange over links of each kind.
  std::array<int64_t, link_kinds> partners(const Phase&, int position) const;
  /// To the position `by` further along the line, around it.
  size_t link(const Phase&, int position, int by) const;
  LineLinks lines(const Phase&) const;

 private:
  // Ranks of the position's line that are on its node.
  int near(const Phase&, int position) const;

  Placement placement_;
  int positions_;
  std::vector<Rank> members_;
};

}  // namespace gyre::topo
