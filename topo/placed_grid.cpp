#include "topo/placed_grid.h"

#include <algorithm>

namespace gyre::topo {

int PlacedGrid::near(const Phase& phase, int position) const {
  if (placement_.per_node == 0) return phase.extent;
  const int first = position - position / phase.weight % phase.extent * phase.weight;
  if (members_.empty()) {  // counted, since a line may hold all ranks
    const int begin = placement_.node(position) * placement_.per_node;
    const auto before = [&](int bound) {
      return bound <= first ? 0 : std::min((bound - first + phase.weight - 1) / phase.weight, phase.extent);
    };
    return before(begin + placement_.per_node) - before(begin);
  }
  int count = 0;
  for (int x = 0; x < phase.extent; ++x) {
    if (placement_.link(member(first + x * phase.weight), member(position)) == inside) ++count;
  }
  return count;
}

std::array<int64_t, link_kinds> PlacedGrid::partners(const Phase& phase, int position) const {
  const int same = near(phase, position);
  return {same - 1, phase.extent - same};
}

size_t PlacedGrid::link(const Phase& phase, int position, int by) const {
  const int coordinate = position / phase.weight % phase.extent;
  const int next = (coordinate + by + phase.extent) % phase.extent;
  return placement_.link(member(position), member(position + (next - coordinate) * phase.weight));
}

LineLinks PlacedGrid::lines(const Phase& phase) const {
  LineLinks out;
  int64_t borders = 0;
  for (int p = 0; p < positions_; ++p) {
    if (phase.exchange == Exchange::direct) {
      const auto here = partners(phase, p);
      if (here[between] >= out.partners[between]) out.partners = here;
    } else if (link(phase, p, 1) == between) {
      ++borders;
    }
  }
  if (borders > 0) out.border = std::max<int64_t>(1, positions_ / borders);
  return out;
}

}  // namespace gyre::topo
