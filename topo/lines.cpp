// The lines of a grid along which families work.
#include "topo/families.h"

namespace gyre::topo {

Lines ring_lines(const Shape& shape) { return {{{shape.ranks, Exchange::ring}}}; }
Lines direct_lines(const Shape& shape) { return {{{shape.ranks, Exchange::direct}}}; }
Lines one_shot_lines(const Shape& shape) { return shape.collective == Collective::all_reduce ? Lines() : direct_lines(shape); }

}  // namespace gyre::topo
