// Reduce-scatter and all-gather over a grid of ranks, a dimension at a time: the generator behind most families. Along a dimension the
// exchange is a ring, or direct between all ranks of a line. The data is cut into a part per position of the grid. The reduce-scatter
// takes the fastest dimension first, so that the parts that go to one rank are always one arithmetic progression, and one message.
#pragma once
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "topo/grid.h"
#include "topo/shape.h"

namespace gyre::topo {

/// Writes one channel. Part i of the data is the builder's chunk i * channels + channel.
class Bucket {
 public:
  /// `members`: the rank at each position of the grid.
  Bucket(schedule::Builder&, Collective, std::vector<Dimension>, std::vector<Rank> members, uint32_t channels, uint32_t channel);

  void reduce_scatter();
  void all_gather();

 private:
  int coordinate(int position, size_t d) const { return position / weights_[d] % dimensions_[d].extent; }
  /// `by` ranks further along the line, around it.
  int moved(int position, size_t d, int by) const;
  Rank member(int position) const { return members_[static_cast<size_t>(position)]; }
  std::vector<Rank> others(int position, size_t d) const;
  /// How far from its own coordinate is the coordinate of the parts that a position has when a dimension was reduce-scattered.
  int ahead(size_t d) const;
  schedule::Chunks parts(int position, size_t d, int coordinate) const;
  /// What the reduce-scatter of dimension d gives.
  schedule::Builder::Sum sum(size_t d) const;
  void scatter_by_ring(size_t d);
  void gather_by_ring(size_t d);
  void scatter_directly(size_t d);
  void gather_directly(size_t d);

  schedule::Builder& builder_;
  std::vector<Dimension> dimensions_;
  std::vector<Rank> members_;
  std::vector<int> weights_;  // of a dimension's coordinate in a position; at the end: the number of positions
  uint32_t channels_;
  uint32_t channel_;
  int direction_;  // odd channels go around their rings the other way
  bool golden_;    // see ahead()
};

/// The whole schedule of an all-reduce, a reduce-scatter or an all-gather between all ranks.
schedule::Schedule bucket_over(std::string family, const Shape&, const std::vector<Dimension>&);

}  // namespace gyre::topo
