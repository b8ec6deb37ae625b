#include "schedule/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "schedule/simulator.h"

namespace gyre::schedule {
namespace {

Error refused(const Schedule& schedule, Code code, const std::string& what) {
  return Error{code, fmt::format("simulation of {} for {} ranks: {}", schedule.family, schedule.ranks, what)};
}

// Empty: the input makes sense.
std::string senseless(const Schedule& schedule, const Network& network, const Trial& trial) {
  const auto positive = [](double value) { return std::isfinite(value) && value >= 0; };
  if (network.ranks != schedule.ranks) return fmt::format("the network has {} ranks", network.ranks);
  if (!positive(trial.block_bytes)) return fmt::format("a block of {} bytes", trial.block_bytes);
  if (trial.rounds == 0 || trial.conditions.slices == 0) {
    return fmt::format("{} rounds of {} slices", trial.rounds, trial.conditions.slices);
  }
  if (!positive(trial.jitter)) return fmt::format("a jitter of {}", trial.jitter);
  for (const Straggler& straggler : trial.stragglers) {
    if (straggler.rank < 0 || straggler.rank >= schedule.ranks) return fmt::format("a straggler of rank {}", straggler.rank);
    if (!positive(straggler.factor) || !positive(straggler.delay)) {
      return fmt::format("a straggler by a factor of {} and {} s", straggler.factor, straggler.delay);
    }
  }
  return {};
}

}  // namespace

Trial trial(const Schedule& schedule, double block_bytes, double slice_bytes, Conditions conditions) {
  const double slices = std::max(1.0, std::ceil(block_bytes / schedule.chunks / slice_bytes));
  Trial out;
  out.block_bytes = block_bytes;
  out.rounds = static_cast<uint32_t>(std::ceil(slices / conditions.slices));
  out.conditions = conditions;
  out.conditions.slices = static_cast<uint32_t>(std::ceil(slices / out.rounds));
  return out;
}

Result<Simulation> simulate(const Schedule& schedule, const Network& network, const Trial& trial) {
  if (const std::string wrong = senseless(schedule, network, trial); !wrong.empty()) {
    return refused(schedule, Code::invalid_argument, wrong);
  }
  const Wiring wiring(schedule);
  if (!wiring.malformed().empty()) return refused(schedule, Code::internal, wiring.malformed());
  Simulator simulator(schedule, wiring, network, trial);
  if (const auto missing = simulator.missing_link()) {
    return refused(schedule, Code::invalid_argument,
                   fmt::format("rank {} sends to rank {}, and the network has no link between them", missing->first, missing->second));
  }
  simulator.run();
  if (const std::string deadlock = simulator.deadlock(); !deadlock.empty()) return refused(schedule, Code::internal, deadlock);
  return simulator.take_result();
}

Result<Simulation> hop_by_hop(const Schedule& schedule) {
  Network network;
  network.ranks = schedule.ranks;
  network.classes.push_back({"hop", 1, 0, 0, false, {}});
  Trial once;
  once.conditions.credits = UINT32_MAX;
  return simulate(schedule, network, once);
}

Result<uint32_t> hops(const Schedule& schedule) { return static_cast<uint32_t>(std::lround(GYRE_TRY(hop_by_hop(schedule)).finish)); }

}  // namespace gyre::schedule
