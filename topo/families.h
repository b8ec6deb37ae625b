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
/// A heap, rank i below rank (i-1)/2, counted from the root: sums go up, the result comes down the same edges, both at a time.
/// In ordered numerics the sums are those of the canonical tree instead.
schedule::Schedule tree(const Shape&);
/// Two binary trees, each with half of the data and a channel of its own; every rank is inner in at most one. Sanders, Speck and Träff,
/// "Two-tree algorithms for full bandwidth broadcast, reduction and scan" (2009).
schedule::Schedule double_tree(const Shape&);
/// The ranks of a node in a chain, and two binary trees between nodes, on channels of their own, as NCCL's trees go: every node is inner
/// in at most one. On odd channels the last rank of a node stands in the tree and not the first; on the root's node the root does.
schedule::Schedule chained_tree(const Shape&);
/// Exchanges with the rank 1, 2, 4, … away, of half, a quarter, … of the data, and back: Thakur, Rabenseifner and Gropp, "Optimization of
/// collective communication operations in MPICH" (2005). Ranks beyond a power of two fold their data into others' first (all-reduce), or
/// lines of as many ranks as the grid or the prime factors say exchange directly.
schedule::Schedule halving_doubling(const Shape&);
/// Rings along the lines of a grid, a dimension at a time: Jain and Sabharwal, "Optimal bucket algorithms for large MPI collectives on
/// torus interconnects" (2010).
schedule::Schedule bucket(const Shape&);
/// Sharded: inside of a node directly, and between nodes a ring per local rank with its shard, or in ordered numerics
/// again directly.
schedule::Schedule hierarchical(const Shape&);
/// One rank of each node collects what the node has, the leaders form a ring, and each gives its node the result.
schedule::Schedule leaders(const Shape&);
/// In one hop: every rank sends all others what they need, and reduces in rank order for itself.
schedule::Schedule one_shot(const Shape&);
/// In two hops: every rank reduces a part of the data, in rank order, and gives it to all that need it. The broadcast is a scatter and an
/// all-gather, as in Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and experience" (2007).
schedule::Schedule two_shot(const Shape&);
/// Exchanges with the rank 1, 2, 4, … after, every message holding all blocks that go the same way: Bruck, Ho, Kipnis, Upfal and
/// Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing systems" (1997), with the far exchanges
/// made while there is little to send, as in Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale" (2025).
schedule::Schedule pat(const Shape&);

/// The lines along which an all-reduce, a reduce-scatter or an all-gather goes.
Lines ring_lines(const Shape&);
Lines direct_lines(const Shape&);  ///< between all ranks
Lines one_shot_lines(const Shape&);
Lines bucket_lines(const Shape&);
Lines halving_doubling_lines(const Shape&);
Lines hierarchical_lines(const Shape&);
/// Whether halving-doubling works between the largest power of two of the ranks, and folds the others into these.
bool folds(const Shape&);

}  // namespace gyre::topo
