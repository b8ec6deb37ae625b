#include "topo/bucket.h"

#include <numeric>

#include "topo/families.h"

namespace gyre::topo {
namespace {

int around(int coordinate, int extent) { return (coordinate % extent + extent) % extent; }

}  // namespace

Bucket::Bucket(schedule::Builder& builder, Collective collective, std::vector<Dimension> dimensions, std::vector<Rank> members,
               uint32_t channels, uint32_t channel)
    : builder_(builder),
      dimensions_(std::move(dimensions)),
      members_(std::move(members)),
      weights_{1},
      channels_(channels),
      channel_(channel),
      direction_(channel % 2 == 0 ? 1 : -1),
      golden_(collective == Collective::all_reduce) {
  for (const Dimension& dimension : dimensions_) weights_.push_back(weights_.back() * dimension.extent);
  builder_.channel(channel);
}

void Bucket::reduce_scatter() {
  for (size_t d = 0; d < dimensions_.size(); ++d) dimensions_[d].exchange == Exchange::ring ? scatter_by_ring(d) : scatter_directly(d);
}

void Bucket::all_gather() {
  for (size_t d = dimensions_.size(); d-- > 0;) dimensions_[d].exchange == Exchange::ring ? gather_by_ring(d) : gather_directly(d);
}

int Bucket::moved(int position, size_t d, int by) const {
  const int from = coordinate(position, d);
  return position + (around(from + by, dimensions_[d].extent) - from) * weights_[d];
}

// The other ranks of the line, in the order of coordinates.
std::vector<Rank> Bucket::others(int position, size_t d) const {
  std::vector<Rank> all;
  for (int x = 0; x < dimensions_[d].extent; ++x) {
    if (x != coordinate(position, d)) all.push_back(member(moved(position, d, x - coordinate(position, d))));
  }
  return all;
}

// The ring of an all-reduce is the published one, where rank r sends part r first and has the sum of part r + 1. A reduce-scatter must
// end with part r on rank r.
int Bucket::ahead(size_t d) const { return golden_ && dimensions_[d].exchange == Exchange::ring ? direction_ : 0; }

// The parts with this coordinate in dimension d, and in the dimensions before it the coordinates that the position has.
schedule::Chunks Bucket::parts(int position, size_t d, int coordinate_in_d) const {
  int first = around(coordinate_in_d, dimensions_[d].extent) * weights_[d];
  for (size_t i = 0; i < d; ++i) first += around(coordinate(position, i) + ahead(i), dimensions_[i].extent) * weights_[i];
  const auto count = static_cast<uint32_t>(weights_.back() / weights_[d + 1]);
  const uint32_t stride = static_cast<uint32_t>(weights_[d + 1]) * channels_;
  return {{}, static_cast<uint32_t>(first) * channels_ + channel_, count, count == 1 ? 1 : stride};
}

schedule::Builder::Sum Bucket::sum(size_t d) const {
  return weights_[d + 1] == weights_.back() ? schedule::Builder::Sum::whole : schedule::Builder::Sum::partial;
}

void Bucket::scatter_by_ring(size_t d) {
  for (int s = 1; s < dimensions_[d].extent; ++s) {
    for (int p = 0; p < weights_.back(); ++p) {
      const bool last = s + 1 == dimensions_[d].extent;
      builder_.reduce(member(p), member(moved(p, d, direction_)), parts(p, d, coordinate(p, d) + ahead(d) - direction_ * s),
                      last ? sum(d) : schedule::Builder::Sum::partial);
    }
    builder_.round();
  }
}

void Bucket::gather_by_ring(size_t d) {
  for (int s = 0; s < dimensions_[d].extent - 1; ++s) {
    for (int p = 0; p < weights_.back(); ++p) {
      builder_.copy(member(p), member(moved(p, d, direction_)), parts(p, d, coordinate(p, d) + ahead(d) - direction_ * s));
    }
    builder_.round();
  }
}

void Bucket::scatter_directly(size_t d) {
  if (dimensions_[d].extent == 1) return;
  for (int p = 0; p < weights_.back(); ++p) {
    const Rank rank = member(p);
    for (int i = 1; i < dimensions_[d].extent; ++i) {  // each to another one first, so that not all send to the same
      const Rank to = member(moved(p, d, i));
      builder_.step(rank, {}, builder_.current(rank, parts(p, d, coordinate(p, d) + i)), {}, {&to, 1});
    }
    const schedule::Chunks own = parts(p, d, coordinate(p, d));
    builder_.step(rank, others(p, d), builder_.current(rank, own), builder_.room(rank, own, sum(d)), {},
                  static_cast<uint32_t>(coordinate(p, d)));
  }
}

void Bucket::gather_directly(size_t d) {
  if (dimensions_[d].extent == 1) return;
  for (int p = 0; p < weights_.back(); ++p) {
    const Rank rank = member(p);
    const auto to = others(p, d);
    std::vector<Rank> rotated(to.begin() + coordinate(p, d), to.end());
    rotated.insert(rotated.end(), to.begin(), to.begin() + coordinate(p, d));
    builder_.step(rank, {}, builder_.current(rank, parts(p, d, coordinate(p, d))), {}, rotated);
    for (int i = 1; i < dimensions_[d].extent; ++i) {
      const Rank from = member(moved(p, d, -i));
      builder_.step(rank, {&from, 1}, {}, builder_.room(rank, parts(p, d, coordinate(p, d) - i)), {});
    }
  }
}

schedule::Schedule bucket_over(std::string family, const Shape& shape, const std::vector<Dimension>& dimensions) {
  const uint32_t parts = shape.collective == Collective::all_reduce ? static_cast<uint32_t>(shape.ranks) : 1;
  schedule::Builder builder(std::move(family), {shape.collective, shape.ranks, shape.root, shape.channels * parts}, shape.channels);
  if (shape.ordered) builder.ordered();
  std::vector<Rank> members(static_cast<size_t>(shape.ranks));
  std::iota(members.begin(), members.end(), 0);
  for (uint32_t c = 0; c < shape.channels; ++c) {
    Bucket bucket(builder, shape.collective, dimensions, members, shape.channels, c);
    if (shape.collective != Collective::all_gather) bucket.reduce_scatter();
    if (shape.collective != Collective::reduce_scatter) bucket.all_gather();
  }
  return std::move(builder).build();
}

schedule::Schedule bucket(const Shape& shape) { return bucket_over("bucket", shape, *bucket_lines(shape)); }
schedule::Schedule hierarchical(const Shape& shape) { return bucket_over("hierarchical", shape, *hierarchical_lines(shape)); }

}  // namespace gyre::topo
