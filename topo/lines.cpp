// The lines of a grid along which families work.
#include <bit>

#include "topo/families.h"

namespace gyre::topo {

bool folds(const Shape& shape) {
  return shape.collective == Collective::all_reduce && shape.grid.empty() && !std::has_single_bit(static_cast<unsigned>(shape.ranks));
}

Lines ring_lines(const Shape& shape) { return {{{shape.ranks, Exchange::ring}}}; }
Lines direct_lines(const Shape& shape) { return {{{shape.ranks, Exchange::direct}}}; }
Lines one_shot_lines(const Shape& shape) { return shape.collective == Collective::all_reduce ? Lines() : direct_lines(shape); }
Lines bucket_lines(const Shape& shape) { return along(shape.grid.empty() ? most_square(shape.ranks) : shape.grid, Exchange::ring); }
Lines halving_doubling_lines(const Shape& shape) {
  if (folds(shape)) return {};
  return along(shape.grid.empty() ? prime_factors(shape.ranks) : shape.grid, Exchange::direct);
}
Lines hierarchical_lines(const Shape& shape) {
  if (shape.ranks == 1) return Lines(std::in_place);
  const Exchange between_nodes = shape.ordered ? Exchange::direct : Exchange::ring;  // a ring begins with another rank for each part
  return {{{shape.grid[0], Exchange::direct}, {shape.grid[1], between_nodes}}};
}

}  // namespace gyre::topo
