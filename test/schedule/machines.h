// Machines to play schedules on.
#pragma once
#include <stdexcept>

#include "schedule/fuse.h"
#include "schedule/simulate.h"
#include "topo/algorithms.h"
#include "topo/graph.h"

namespace gyre::test {

inline schedule::Network machine(const topo::Graph& graph) {
  auto made = topo::network(graph);
  if (!made) throw std::runtime_error(made.error().what);
  return *std::move(made);
}
/// Links of this latency and time per byte, between ranks whose processors take no time but for reductions.
inline schedule::Network ideal(int ranks, double alpha, double beta, double gamma = 0) {
  return machine(topo::uniform(ranks, {"link", alpha, beta, 0, false, {}}, {gamma, 0, 0}));
}

/// Fused, as it runs.
inline schedule::Schedule made(std::string_view family, const topo::Shape& shape) {
  auto built = topo::make(family, shape);
  if (!built) throw std::runtime_error(built.error().what);
  return schedule::fuse(*std::move(built));
}
inline schedule::Schedule made(std::string_view family, int ranks, uint32_t channels = 1) {
  return made(family, topo::Shape{Collective::all_reduce, ranks, channels, 0, {}});
}

inline schedule::Simulation played(const schedule::Schedule& schedule, const schedule::Network& network, const schedule::Trial& trial) {
  auto done = schedule::simulate(schedule, network, trial);
  if (!done) throw std::runtime_error(done.error().what);
  return *std::move(done);
}
/// Of blocks of these bytes, each chunk in `slices` slices that are all in flight together; credits for all of them, twice.
inline schedule::Trial sliced(double block_bytes, uint32_t slices = 1) {
  schedule::Trial trial;
  trial.block_bytes = block_bytes;
  trial.conditions.slices = slices;
  trial.conditions.credits = 2 * slices;
  return trial;
}

}  // namespace gyre::test
