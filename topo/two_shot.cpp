#include <numeric>

#include "topo/bucket.h"
#include "topo/families.h"

namespace gyre::topo {
namespace {

// The root gives each other rank a part, and these give their parts to each other.
schedule::Schedule broadcast(const Shape& shape) {
  const int others = shape.ranks - 1;
  const auto parts = static_cast<uint32_t>(std::max(1, others));
  schedule::Builder builder("two_shot", {shape.collective, shape.ranks, shape.root, shape.channels * parts}, shape.channels);
  const auto other = [&](int i) { return (shape.root + 1 + i % others) % shape.ranks; };
  for (uint32_t c = 0; c < shape.channels && others > 0; ++c) {
    builder.channel(c);
    const auto part = [&](int i) { return schedule::Chunks{{}, static_cast<uint32_t>(i % others) * shape.channels + c, 1}; };
    for (int i = 0; i < others; ++i) builder.copy(shape.root, other(i), part(i));
    builder.round();
    for (int i = 0; i < others; ++i) {
      for (int j = 1; j < others; ++j) builder.copy(other(i), other(i + j), part(i));
    }
    builder.round();
  }
  return std::move(builder).build();
}

// Every rank reduces a part and gives the sum to the root.
schedule::Schedule reduce(const Shape& shape) {
  const auto parts = static_cast<uint32_t>(shape.ranks);
  schedule::Builder builder("two_shot", {shape.collective, shape.ranks, shape.root, shape.channels * parts}, shape.channels);
  if (shape.ordered) builder.ordered();
  std::vector<Rank> members(parts);
  std::iota(members.begin(), members.end(), 0);
  for (uint32_t c = 0; c < shape.channels; ++c) {
    Bucket(builder, shape.collective, *direct_lines(shape), members, shape.channels, c).reduce_scatter();
    for (const Rank rank : members) {
      if (rank != shape.root) builder.copy(rank, shape.root, {{}, static_cast<uint32_t>(rank) * shape.channels + c, 1});
    }
    builder.round();
  }
  return std::move(builder).build();
}

}  // namespace

schedule::Schedule two_shot(const Shape& shape) {
  if (shape.collective == Collective::broadcast) return broadcast(shape);
  if (shape.collective == Collective::reduce) return reduce(shape);
  return bucket_over("two_shot", shape, *direct_lines(shape));
}

}  // namespace gyre::topo
