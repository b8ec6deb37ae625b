#include "engine/stream_operations.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace gyre::engine {
namespace {

// How a stream is led in and out, and that a collective has begun.
constexpr size_t around = 3;
// A wait before a step and a flag behind it.
constexpr size_t of_step = 2;

// A rank's steps of a round, program by program: their order changes no count.
std::vector<schedule::Turn> any_order(const Plan& plan, Rank rank) {
  const schedule::Schedule& schedule = plan.schedule();
  std::vector<schedule::Turn> turns;
  for (uint32_t channel = 0; channel < schedule.channels; ++channel) {
    for (uint32_t strand = 0; strand < schedule.strands; ++strand) {
      const auto steps = static_cast<uint32_t>(schedule.program(rank, channel, strand).steps.size());
      for (uint32_t step = 0; step < steps; ++step) {
        for (uint32_t slice = 0; slice < plan.slices(); ++slice) turns.push_back({channel, strand, {step, slice}});
      }
    }
  }
  return turns;
}

// Memory that no kernel runs on, each far from the others: what lies in one place is not copied there.
std::byte* nowhere(uintptr_t which) {
  return reinterpret_cast<std::byte*>(which << 40);  // NOLINT(performance-no-int-to-ptr)
}

Staging staging_of(const Plan& plan) {
  Staging staging;
  staging.ranks = static_cast<size_t>(plan.schedule().ranks);
  staging.in.assign(plan.schedule().channels * staging.ranks, nowhere(1));
  staging.out.assign(plan.schedule().channels * staging.ranks, nowhere(2));
  staging.sums = nowhere(3);
  staging.place_bytes = plan.message_bytes();
  return staging;
}

}  // namespace

size_t stream_operations(const DeviceSteps& steps) {
  size_t operations = around + of_step * steps.steps.size();
  for (const DeviceKernel& kernel : steps.kernels) operations += kernel.args.count != 0 ? 1 : 0;
  return operations;
}

bool fits_stream(const Plan& plan) {
  const Staging staging = staging_of(plan);
  for (Rank rank = 0; rank < plan.schedule().ranks; ++rank) {
    const auto turns = any_order(plan, rank);
    if (around + of_step * turns.size() * plan.rounds() > most_stream_operations) return false;  // without its kernels
    const DeviceSteps steps = device_steps(plan, rank, turns, {nowhere(4), nowhere(5), 0}, nowhere(6), staging);
    if (stream_operations(steps) > most_stream_operations) return false;
  }
  return true;
}

}  // namespace gyre::engine
