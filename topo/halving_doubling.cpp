#include <bit>

#include "topo/bucket.h"
#include "topo/families.h"

namespace gyre::topo {
namespace {

// The largest power of two of the ranks does the work. Each surplus rank hands its data to the rank after it first, so that sums stay in
// the order of ranks, and gets the result last. These are the sums of the canonical tree (schedule/canonical.h).
schedule::Schedule folded(const Shape& shape) {
  const auto active = static_cast<int>(std::bit_floor(static_cast<unsigned>(shape.ranks)));
  const int surplus = shape.ranks - active;
  const auto parts = static_cast<uint32_t>(active);
  schedule::Builder builder("halving_doubling", {shape.collective, shape.ranks, shape.root, shape.channels * parts}, shape.channels);
  if (shape.ordered) builder.ordered();
  std::vector<Rank> members;
  members.reserve(parts);
  for (int i = 0; i < active; ++i) members.push_back(i < surplus ? 2 * i + 1 : i + surplus);
  for (uint32_t c = 0; c < shape.channels; ++c) {
    Bucket bucket(builder, shape.collective, along(prime_factors(active), Exchange::direct), members, shape.channels, c);
    const schedule::Chunks all{{}, c, parts, parts == 1 ? 1 : shape.channels};
    for (int i = 0; i < surplus; ++i) builder.reduce(2 * i, 2 * i + 1, all, schedule::Builder::Sum::partial);
    builder.round();
    bucket.reduce_scatter();
    bucket.all_gather();
    for (int i = 0; i < surplus; ++i) builder.copy(2 * i + 1, 2 * i, all);
    builder.round();
  }
  return std::move(builder).build();
}

}  // namespace

schedule::Schedule halving_doubling(const Shape& shape) {
  return folds(shape) ? folded(shape) : bucket_over("halving_doubling", shape, *halving_doubling_lines(shape));
}

}  // namespace gyre::topo
