#include <fmt/format.h>

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
#include "perf/sample_job.h"
#include "perf/sweep_buffer.h"
#include "transport/launch.h"

namespace gyre::perf {
namespace {

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

// All ranks know the same times, and so go on with the same candidates.
Status time_round(engine::Communicator& communicator, TimedSize& size, int round) {
  TimeLimit unlimited;
  for (const size_t candidate : in_round(size.samples, round)) {
    Sample& sample = size.samples[candidate];
    communicator.prefer(preference(sample));
    Measured measured;
    GYRE_TRY(time(std::array{Lane{&communicator, size.place}}, size.call,
                  {.warmup = 1, .iterations = calls(size.call.bytes(), sample.crowded())}, unlimited, measured));
    sample.us.push_back(measured.time_us);
  }
  return {};
}

void print_best(const TimedSize& size) {
  const Sample& best = *std::ranges::min_element(size.samples, {}, [](const Sample& s) { return s.median_us(); });
  fmt::print("{:>14} {:>12} bytes: {} {:.2f} us\n", name(best.collective), best.bytes, best.family, best.median_us());
}

Status take(engine::Communicator& communicator, const MeasureCommand& command, Sample job, std::vector<Sample>& samples) {
  const auto bytes = GYRE_TRY(sizes_of(command.sizes));
  const SweepBuffer input = GYRE_TRY(SweepBuffer::allocate(bytes.back() + guard_bytes));
  const SweepBuffer output = GYRE_TRY(SweepBuffer::allocate(bytes.back() + guard_bytes));
  std::vector<TimedSize> sizes;
  for (const Collective collective : command.collectives) {
    job.collective = collective;
    const auto all = GYRE_TRY(candidates(job));
    for (const size_t each : bytes) {
      const Case c = case_of(benchmark_of(collective), job.ranks, each, DataType::float32, ReduceOp::sum, 0);
      if (c.count == 0) continue;  // less than an element for each rank
      if (!sizes.empty() && sizes.back().call.benchmark == c.benchmark && sizes.back().call.bytes() == c.bytes()) continue;
      sizes.push_back({c, out_of_place(c, communicator.rank(), input.data(), output.data()), all});
      for (Sample& sample : sizes.back().samples) sample.bytes = c.bytes();
    }
  }
  if (sizes.empty()) return Error{Code::invalid_argument, fmt::format("up to {} bytes: less than an element for each rank", bytes.back())};
  // Rounds of all, so that what is different with the machine for a while is so for all candidates, and for all sizes.
  for (int round = 0; round < command.rounds; ++round) {
    for (TimedSize& size : sizes) GYRE_TRY(time_round(communicator, size, round));
    if (communicator.rank() == 0) fmt::print("round {} of {}\n", round + 1, command.rounds);
    std::fflush(stdout);
  }
  for (TimedSize& size : sizes) {
    if (communicator.rank() == 0) print_best(size);
    samples.insert(samples.end(), size.samples.begin(), size.samples.end());
  }
  return {};
}

Status take_and_keep(const MeasureCommand& command, const Config& config, const transport::Rendezvous& rendezvous) {
  auto communicator = GYRE_TRY(engine::Communicator::create(rendezvous, config));
  communicator->only_by_messages();  // what is fitted is what they cost
  const Sample job = GYRE_TRY(sample_of_job(*communicator, config));
  std::vector<Sample> samples;
  GYRE_TRY(take(*communicator, command, job, samples));
  if (communicator->rank() == 0) GYRE_TRY(append_samples(command.file, command.command_line, config, samples));
  return communicator->bootstrap().barrier();
}

int sampling_rank(const MeasureCommand& command, const Config& config, const transport::Rendezvous& rendezvous) {
  const Status status = take_and_keep(command, config, rendezvous);
  return status ? 0 : complain(status.error());
}

// What is wrong with it is said before any rank starts.
Status check_measure(const MeasureCommand& command, bool writes) {
  GYRE_TRY(sizes_of(command.sizes));
  if (!writes || std::ofstream(command.file, std::ios::app)) return {};
  return Error{Code::invalid_argument, fmt::format("--output {}: {}", command.file, std::strerror(errno))};
}

Result<Config> with_transport(Config config, const std::string& transport) {
  if (!transport.empty()) GYRE_TRY(config.set("GYRE_TRANSPORT", transport, "--transport"));
  return config;
}

// One rank of those that a launcher started.
int measure_launched(const MeasureCommand& command, const Config& given, transport::Rendezvous rendezvous) {
  constexpr int most = 512;  // of samples
  const int size = rendezvous.size;
  if (command.ranks.value_or(size) != size)
    return complain({Code::invalid_argument, fmt::format("--ranks {}: the launcher started {}", *command.ranks, size)});
  if (size > most)
    return complain({Code::invalid_argument, fmt::format("the launcher started {}: samples are of {} ranks at most", size, most)});
  const auto config = with_transport(given, command.transport);
  if (!config) return complain(config.error());
  if (const Status right = check_measure(command, rendezvous.rank == 0); !right) return complain(right.error());
  rendezvous.timeout = std::chrono::seconds(*config->timeout);
  return sampling_rank(command, *config, rendezvous);
}

}  // namespace

int measure_here(const MeasureCommand& command, const Config& given) {
  const auto config = with_transport(given, command.transport.empty() ? "shm" : command.transport);
  if (!config) return complain(config.error());
  if (const Status right = check_measure(command, true); !right) return complain(right.error());
  return run_local_ranks(command.ranks.value_or(2), std::chrono::seconds(*config->timeout),
                         [&](const transport::Rendezvous& rendezvous) { return sampling_rank(command, *config, rendezvous); });
}

int measure(const MeasureCommand& command, const Config& config) {
  const auto launched = transport::rendezvous_from_environment(transport::Environment::of_process());
  if (!launched) return complain(launched.error());
  const bool several = *launched && (*launched)->size > 1;  // a shell of one task starts ranks of its own
  return several ? measure_launched(command, config, **launched) : measure_here(command, config);
}

}  // namespace gyre::perf
