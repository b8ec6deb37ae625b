#include <numeric>

#include "topo/algorithms.h"

namespace gyre::topo {

using schedule::Buffer;

schedule::Schedule naive(int ranks, uint32_t channels) {
  schedule::Builder b("naive", ranks, channels, channels);
  std::vector<Rank> others(static_cast<size_t>(ranks - 1));
  std::iota(others.begin(), others.end(), 1);
  const Rank root = 0;
  for (uint32_t c = 0; c < channels && ranks > 1; ++c) {
    b.channel(c);
    for (const Rank r : others) b.step(r, {}, {Buffer::input, c, 1}, {}, {&root, 1});
    b.step(root, others, {Buffer::input, c, 1}, {Buffer::output, c, 1}, others);
    for (const Rank r : others) b.step(r, {&root, 1}, {}, {Buffer::output, c, 1}, {});
  }
  return std::move(b).build();
}

}  // namespace gyre::topo
