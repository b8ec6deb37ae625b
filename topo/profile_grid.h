// Profiles by formula, for families whose schedules grow with the square of the ranks (topo/profile.cpp). No schedule is made; what is
// looked at is each rank's lines in the grid.
#pragma once
#include <optional>
#include <vector>

#include "topo/grid.h"
#include "topo/profile.h"

namespace gyre::topo {

/// What one rank does in all, on one channel: chunks through its port, and work.
struct Load {
  std::array<int64_t, link_kinds> out{}, in{};
  Tally work;
};
/// Takes the busiest rank's and node's loads into the profile.
void take_loads(Profile&, const std::vector<Load>& ranks, const Placement&, int64_t channels);

/// What bucket.h writes for a grid of all ranks.
Profile profile_of_grid(const Shape&, const Placement&, const std::vector<Dimension>&);
/// Halving-doubling that folds; nothing: this shape is not folded.
std::optional<Profile> profile_of_folded(const Shape&, const Placement&);
/// What pat.cpp writes.
std::optional<Profile> profile_of_pat(const Shape&, const Placement&);
/// One shot's all-to-all; nothing: another collective.
std::optional<Profile> profile_of_all_to_all(const Shape&, const Placement&);

}  // namespace gyre::topo
