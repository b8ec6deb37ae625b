#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "perf/check.h"
#include "perf/commands.h"
#include "perf/launch.h"
#include "perf/measure.h"
#include "perf/report.h"
#include "perf/samples.h"
#include "perf/sweep_buffer.h"
#include "topo/algorithms.h"
#include "topo/grid.h"

namespace gyre::perf {
namespace {

// What can run on one host: the families that know nodes have nothing to know there.
std::vector<engine::Preference> candidates(Collective collective, int ranks) {
  std::vector<engine::Preference> all;
  const auto add_where_it_can = [&](const topo::Family& family, const std::vector<int>& grid) {
    if (topo::refusal(family, {collective, ranks, 1, 0, grid}).empty()) all.push_back({std::string(family.name), grid});
  };
  for (const topo::Family& family : topo::families()) add_where_it_can(family, {});
  if ((ranks & (ranks - 1)) != 0) add_where_it_can(*topo::family_named("halving_doubling"), topo::prime_factors(ranks));
  return all;
}

int processors() {
  cpu_set_t all;
  CPU_ZERO(&all);
  return sched_getaffinity(0, sizeof all, &all) == 0 ? CPU_COUNT(&all) : 1;
}

// Enough calls to be timed, and no more: the same number on every rank. Ranks that share processors take a hundred times as long.
int calls(size_t bytes, bool crowded) {
  return static_cast<int>(std::clamp<size_t>((8 << 20) / std::max<size_t>(bytes, 8 << 10), 2, crowded ? 100 : 1000));
}

// Of one size: a sample of each candidate, without times.
struct TimedSize {
  Case call;
  Place place;
  std::vector<Sample> samples;
};

Status time_all(engine::Communicator& communicator, TimedSize& size) {
  TimeLimit unlimited;
  for (Sample& sample : size.samples) {
    communicator.prefer({sample.family, sample.grid});
    Measured measured;
    GYRE_TRY(time(std::array{Lane{&communicator, size.place}}, size.call,
                  {.warmup = 1, .iterations = calls(size.call.bytes(), sample.processors < sample.ranks)}, unlimited, measured));
    sample.us.push_back(measured.time_us);
  }
  return {};
}

void print_best(const TimedSize& size) {
  const Sample& best = *std::ranges::min_element(size.samples, {}, [](const Sample& s) { return s.median_us(); });
  fmt::print("{:>14} {:>12} bytes: {} {:.2f} us\n", name(best.collective), best.bytes, best.family, best.median_us());
}

Status take(engine::Communicator& communicator, const MeasureCommand& command, int shared, std::vector<Sample>& samples) {
  const int ranks = communicator.size();
  const auto bytes = GYRE_TRY(sizes_of(command.sizes));
  const SweepBuffer input = GYRE_TRY(SweepBuffer::allocate(bytes.back() + guard_bytes));
  const SweepBuffer output = GYRE_TRY(SweepBuffer::allocate(bytes.back() + guard_bytes));
  std::vector<TimedSize> sizes;
  for (const Collective collective : command.collectives) {
    const auto all = candidates(collective, ranks);
    for (const size_t each : bytes) {
      const Case c = case_of(benchmark_of(collective), ranks, each, DataType::float32, ReduceOp::sum, 0);
      if (c.count == 0) continue;  // less than an element for each rank
      if (!sizes.empty() && sizes.back().call.benchmark == c.benchmark && sizes.back().call.bytes() == c.bytes()) continue;
      sizes.push_back({c, out_of_place(c, communicator.rank(), input.data(), output.data()), {}});
      for (const engine::Preference& candidate : all) {
        sizes.back().samples.push_back(
            {ranks, command.transport, std::min(shared, ranks), candidate.algorithm, candidate.grid, c.bytes(), {}, collective});
      }
    }
  }
  if (sizes.empty()) return Error{Code::invalid_argument, fmt::format("up to {} bytes: less than an element for each rank", bytes.back())};
  // Rounds of all, so that what is different with the machine for a while is so for all candidates, and for all sizes.
  for (int round = 0; round < command.rounds; ++round) {
    for (TimedSize& size : sizes) GYRE_TRY(time_all(communicator, size));
    if (communicator.rank() == 0) fmt::print("round {} of {}\n", round + 1, command.rounds);
    std::fflush(stdout);
  }
  for (TimedSize& size : sizes) {
    if (communicator.rank() == 0) print_best(size);
    samples.insert(samples.end(), size.samples.begin(), size.samples.end());
  }
  return {};
}

Status rank_main(const MeasureCommand& command, int shared, const Config& config, const transport::Rendezvous& rendezvous) {
  auto communicator = GYRE_TRY(engine::Communicator::create(rendezvous, config));
  communicator->only_by_messages();  // what is fitted is what they cost
  std::vector<Sample> samples;
  GYRE_TRY(take(*communicator, command, shared, samples));
  if (communicator->rank() == 0) GYRE_TRY(append_samples(command.file, command.command_line, config, samples));
  return communicator->bootstrap().barrier();
}

}  // namespace

int measure(const MeasureCommand& command, const Config& config) {
  if (const auto sizes = sizes_of(command.sizes); !sizes) return complain(sizes.error());
  if (!std::ofstream(command.file, std::ios::app)) {
    return complain({Code::invalid_argument, fmt::format("--output {}: {}", command.file, std::strerror(errno))});
  }
  const int shared = processors();  // here, since a rank may be bound to one of them
  return run_local_ranks(command.ranks, std::chrono::seconds(*config.timeout), [&](const transport::Rendezvous& rendezvous) {
    const Status status = rank_main(command, shared, config, rendezvous);
    return status ? 0 : complain(status.error());
  });
}

}  // namespace gyre::perf
