#include <algorithm>

#include "topo/families.h"

namespace gyre::topo {
namespace {

/// Some blocks: progressions that are one message each.
using Blocks = std::vector<schedule::Chunks>;

// What passes between a rank and the rank `distance` after it: the blocks of the ranks 0, 2 distances, 4 distances, … before it, as far
// as they are not the other's own ones again. Where that passes rank 0 and the distances don't divide the ranks, it takes two messages.
Blocks passing(Rank rank, int distance, const Shape& shape, uint32_t channel) {
  const int stride = 2 * distance;
  const int count = (shape.ranks - distance + stride - 1) / stride;
  const int passed = std::max(0, count - 1 - rank / stride);  // beyond rank 0
  const auto blocks = [&](int first, int n) {
    const auto channels = shape.channels;
    return schedule::Chunks{{},
                            static_cast<uint32_t>(first) * channels + channel,
                            static_cast<uint32_t>(n),
                            n == 1 ? 1 : static_cast<uint32_t>(stride) * channels};
  };
  const int first = rank - (count - passed - 1) * stride;
  if (passed == 0 || count * stride == shape.ranks) return {blocks(first, count)};
  return {blocks(first, count - passed), blocks(rank + shape.ranks - (count - 1) * stride, passed)};
}

}  // namespace

schedule::Schedule pat(const Shape& shape) {
  schedule::Builder builder("pat", {shape.collective, shape.ranks, shape.root, shape.channels}, shape.channels);
  std::vector<int> distances;
  for (int distance = 1; distance < shape.ranks; distance *= 2) distances.push_back(distance);
  const bool reduces = shape.collective == Collective::reduce_scatter;
  if (!reduces) std::reverse(distances.begin(), distances.end());
  for (uint32_t c = 0; c < shape.channels; ++c) {
    builder.channel(c);
    for (const int distance : distances) {
      for (Rank rank = 0; rank < shape.ranks; ++rank) {
        const Rank after = (rank + distance) % shape.ranks;
        for (const schedule::Chunks& blocks : passing(rank, distance, shape, c)) {
          reduces ? builder.reduce(after, rank, blocks) : builder.copy(rank, after, blocks);
        }
      }
      builder.round();
    }
  }
  return std::move(builder).build();
}

}  // namespace gyre::topo
