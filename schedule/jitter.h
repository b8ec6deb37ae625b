// Random delays that depend on the seed and on what is delayed, and not on the order of events. Private to the simulator.
#pragma once
#include "base/hash.h"
#include "schedule/run.h"

namespace gyre::schedule {

/// What is delayed, each by itself.
enum class Delayed : uint8_t { step, transfer, latency };

/// Zero too becomes something else.
inline uint64_t mixed(uint64_t x) { return mix(x + 0x9e3779b97f4a7c15); }

/// Of a step (peer -1), or of its message to a peer.
inline uint64_t identity(Delayed what, uint32_t program, const Position& position, Rank peer) {
  uint64_t x = mixed(uint64_t{program} << 8 | static_cast<uint64_t>(what));
  x = mixed(x ^ (uint64_t{position.round} << 32 | position.cursor.step));
  return mixed(x ^ (uint64_t{position.cursor.slice} << 32 | static_cast<uint32_t>(peer)));
}

/// `seconds`, longer by a random fraction of it below `jitter`.
inline double jittered(double seconds, double jitter, uint64_t seed, uint64_t what) {
  const double random = static_cast<double>(mixed(what ^ mixed(seed)) >> 11) * 0x1p-53;  // in [0, 1)
  return jitter == 0 ? seconds : seconds * (1 + jitter * random);
}

}  // namespace gyre::schedule
