#include "topo/algorithms.h"

namespace gyre::topo {

schedule::Schedule ring(int ranks, uint32_t channels) {
  const auto n = static_cast<uint32_t>(ranks);
  schedule::Builder b("ring", ranks, channels, channels * n);
  for (uint32_t channel = 0; channel < channels; ++channel) {
    b.channel(channel);
    const auto chunk = [&](Rank index) { return channel * n + static_cast<uint32_t>((index % ranks + ranks) % ranks); };
    const auto next = [&](Rank r) { return (r + 1) % ranks; };
    for (int s = 0; s < ranks - 1; ++s) {  // reduce-scatter: rank r ends with the whole sum of chunk r+1
      for (Rank r = 0; r < ranks; ++r) b.reduce(r, next(r), chunk(r - s));
      b.round();
    }
    for (int s = 0; s < ranks - 1; ++s) {  // all-gather
      for (Rank r = 0; r < ranks; ++r) b.copy(r, next(r), chunk(r + 1 - s));
      b.round();
    }
  }
  return std::move(b).build();
}

}  // namespace gyre::topo
