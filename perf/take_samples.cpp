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

using Candidate = engine::Preference;

// What can run on one host: the families that know nodes have nothing to know there.
std::vector<Candidate> candidates(int ranks) {
  std::vector<Candidate> all;
  for (const topo::Family& family : topo::families()) {
    const topo::Shape shape{Collective::all_reduce, ranks, 1, 0, {}};
    if (topo::refusal(family, shape).empty()) all.push_back({std::string(family.name), {}});
  }
  if ((ranks & (ranks - 1)) != 0) all.push_back({"halving_doubling", topo::prime_factors(ranks)});
  return all;
}

int processors() {
  cpu_set_t all;
  CPU_ZERO(&all);
  return sched_getaffinity(0, sizeof all, &all) == 0 ? CPU_COUNT(&all) : 1;
}

// Enough calls to be timed, and no more: the same number on every rank.
int calls(size_t bytes) { return static_cast<int>(std::clamp<size_t>((8 << 20) / std::max<size_t>(bytes, 8 << 10), 2, 1000)); }

Status take(engine::Communicator& communicator, const MeasureCommand& command, int shared, std::vector<Sample>& samples) {
  const int ranks = communicator.size();
  const auto all = candidates(ranks);
  const auto sizes = GYRE_TRY(sizes_of(command.sizes));
  const SweepBuffer input = GYRE_TRY(SweepBuffer::allocate(sizes.back() + guard_bytes));
  const SweepBuffer output = GYRE_TRY(SweepBuffer::allocate(sizes.back() + guard_bytes));
  TimeLimit unlimited;
  for (const size_t bytes : sizes) {
    const Case c = case_of(benchmark_of(Collective::all_reduce), ranks, bytes, DataType::float32, ReduceOp::sum, 0);
    const Place place = out_of_place(c, communicator.rank(), input.data(), output.data());
    std::vector<Sample> here;
    here.reserve(all.size());
    for (const Candidate& candidate : all) {
      here.push_back({ranks, command.transport, std::min(shared, ranks), candidate.algorithm, candidate.grid, c.bytes(), {}});
    }
    for (int round = 0; round < command.rounds; ++round) {
      for (size_t i = 0; i < all.size(); ++i) {  // rounds of all, so that what disturbs the machine for a while disturbs all alike
        communicator.prefer(all[i]);
        Measured measured;
        GYRE_TRY(time(std::array{Lane{&communicator, place}}, c, {.warmup = 1, .iterations = calls(c.bytes())}, unlimited, measured));
        here[i].us.push_back(measured.time_us);
      }
    }
    if (communicator.rank() == 0) {
      const auto best = std::min_element(here.begin(), here.end(), [](auto& a, auto& b) { return a.median_us() < b.median_us(); });
      fmt::print("{:>12} bytes: {} {:.2f} us\n", c.bytes(), best->family, best->median_us());
      std::fflush(stdout);
    }
    samples.insert(samples.end(), here.begin(), here.end());
  }
  return {};
}

Status rank_main(const MeasureCommand& command, int shared, const Config& config, const transport::Rendezvous& rendezvous) {
  auto communicator = GYRE_TRY(engine::Communicator::create(rendezvous, config));
  communicator->only_by_messages();  // what is fitted is what they cost
  std::vector<Sample> samples;
  GYRE_TRY(take(*communicator, command, shared, samples));
  if (communicator->rank() == 0) GYRE_TRY(append_samples(command.file, command.command_line, samples));
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
