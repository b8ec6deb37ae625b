#include "topo/select.h"

namespace gyre::topo {
namespace {

// One hop beats 2(ranks-1) hops until every rank's receiving of everybody's bytes weighs more. Measured over shm on a 2-core AMD EPYC
// (perf/peers/peer_gyre, 1 KiB to 256 KiB): 2 ranks, one_shot ahead throughout (256 KiB: 12 us, ring 27 us); 4 ranks, ahead to 64 KiB
// (35 us, ring 42 us), behind from 128 KiB.
constexpr size_t one_shot_bytes = 256 << 10;  // received per rank

}  // namespace

std::string_view choose(size_t bytes, int ranks) {
  if (ranks > 1 && bytes * static_cast<size_t>(ranks - 1) <= one_shot_bytes) return "one_shot";
  return "ring";
}

}  // namespace gyre::topo
