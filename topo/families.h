// The generators behind algorithms.h, one file each: shape -> schedule, for shapes that were looked at. Ranks may be 1.
#pragma once
#include "schedule/schedule.h"
#include "topo/grid.h"
#include "topo/shape.h"

namespace gyre::topo {

/// By a server, which is the root or rank 0: it receives all, reduces in rank order, and sends the result to whom it belongs. The
/// baseline, and the only family that has every collective.
schedule::Schedule naive(const Shape&);
/// Around the ring 0 → 1 → … → 0, on odd channels the other way: reduce-scatter, then all-gather; 2(ranks-1) messages of 1/ranks of the
/// buffer. Broadcast and reduce follow the ring from or to the root, slice after slice. Index rule: Patarasuk and Yuan, "Bandwidth
/// optimal all-reduce algorithms for clusters of workstations" (2009), as NCCL runs it.
schedule::Schedule ring(const Shape&);
/// In one hop: every rank sends all others what they need, and reduces in rank order for itself.
schedule::Schedule one_shot(const Shape&);

/// The lines along which an all-reduce, a reduce-scatter or an all-gather goes.
Lines ring_lines(const Shape&);
Lines direct_lines(const Shape&);  ///< between all ranks
Lines one_shot_lines(const Shape&);

}  // namespace gyre::topo
