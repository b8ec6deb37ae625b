#include "topo/algorithms.h"

namespace gyre::topo {

using schedule::Buffer;

schedule::Schedule one_shot(int ranks, uint32_t channels) {
  schedule::Builder b("one_shot", ranks, channels, channels);
  for (uint32_t c = 0; c < channels && ranks > 1; ++c) {
    b.channel(c);
    for (Rank r = 0; r < ranks; ++r) {
      std::vector<Rank> others;
      for (Rank i = 0; i < ranks; ++i) {
        if (i != r) others.push_back(i);
      }
      b.step(r, {}, {Buffer::input, c, 1}, {}, others);
      b.step(r, others, {Buffer::input, c, 1}, {Buffer::output, c, 1}, {}, static_cast<uint32_t>(r));
    }
  }
  return std::move(b).build();
}

}  // namespace gyre::topo
