#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

#include "perf/caller.h"

namespace gyre::perf {
namespace {

using Clock = std::chrono::steady_clock;

// What iterations took on this rank.
struct Tally {
  uint64_t iterations = 0;
  double seconds = 0;
  Histogram* histogram = nullptr;  // null: none is wanted
  uint64_t skip = 0;               // iterations that are not for it

  void add(uint64_t iteration, Clock::duration took) const {
    if (histogram == nullptr || iteration < skip) return;
    histogram->add(static_cast<uint64_t>(std::max<int64_t>(0, std::chrono::nanoseconds(took).count())));
  }
};

// The calls of an iteration, communicators in turn.
Status iterate(std::span<const Caller> callers, bool meets) {
  for (int i = 0; i < callers.front().rounds(); ++i) {
    for (const Caller& caller : callers) {
      GYRE_TRY(caller.round());
      if (meets) GYRE_TRY(meet(caller.communicator()));
    }
  }
  return {};
}

// Iterations that ranks begin together, without a look at the clock between them.
Result<Clock::duration> unobserved(std::span<const Caller> callers, bool meets, uint64_t count) {
  const auto start = Clock::now();
  for (uint64_t i = 0; i < count; ++i) GYRE_TRY(iterate(callers, meets));
  return Clock::now() - start;
}

// The same, each iteration timed by itself; what ranks wait for each other after it is not.
Result<Clock::duration> observed(std::span<const Caller> callers, Blocking blocking, uint64_t count, const Tally& tally) {
  Clock::duration sum{};
  auto last = Clock::now();
  for (uint64_t i = 0; i < count; ++i) {
    GYRE_TRY(iterate(callers, blocking == Blocking::barrier_timed));
    const auto now = Clock::now();
    tally.add(tally.iterations + i, now - last);
    sum += now - last;
    last = now;
    if (blocking != Blocking::barrier_untimed) continue;
    GYRE_TRY(meet(callers));
    last = Clock::now();
  }
  return sum;
}

Status burst(std::span<const Caller> callers, Blocking blocking, uint64_t count, Tally& tally) {
  GYRE_TRY(meet(callers));
  const bool looks = tally.histogram != nullptr || blocking == Blocking::barrier_untimed;
  const Clock::duration took =
      GYRE_TRY(looks ? observed(callers, blocking, count, tally) : unobserved(callers, blocking == Blocking::barrier_timed, count));
  GYRE_TRY(meet(callers));
  tally.iterations += count;
  tally.seconds += std::chrono::duration<double>(took).count();
  return {};
}

// As many iterations as are wanted, or there is time for.
Status run(std::span<const Caller> callers, Blocking blocking, uint64_t wanted, TimeLimit& limit, Tally& tally) {
  transport::Bootstrap& bootstrap = callers.front().communicator().bootstrap();
  while (const uint64_t count = GYRE_TRY(limit.next(bootstrap, wanted - tally.iterations, tally.iterations, tally.seconds))) {
    GYRE_TRY(burst(callers, blocking, count, tally));
  }
  return {};
}

Result<double> over_ranks(transport::Bootstrap& bootstrap, double mine, Average average) {
  std::vector<double> all;
  for (const std::string& text : GYRE_TRY(bootstrap.all_gather(fmt::format("{}", mine)))) all.push_back(std::stod(text));
  switch (average) {
    case Average::rank_0:
      return all.front();
    case Average::least:
      return *std::min_element(all.begin(), all.end());
    case Average::most:
      return *std::max_element(all.begin(), all.end());
    default:
      return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  }
}

Result<Histogram> of_all_ranks(transport::Bootstrap& bootstrap, const Histogram& mine) {
  Histogram all;
  for (const std::string& text : GYRE_TRY(bootstrap.all_gather(mine.text()))) {
    const auto one = Histogram::parse(text);
    if (!one) return Error{Code::internal, "a rank's times of iterations cannot be read"};
    all.merge(*one);
  }
  return all;
}

// Zeros stay zeros under every operation, so that no call is slowed by overflow or denormal numbers.
void clear(const Lane& lane, const Case& c) {
  const Rank rank = lane.communicator->rank();
  const size_t size = size_of(c.type);
  if (lane.place.input != nullptr) std::memset(lane.place.input, 0, c.input_elements(rank) * size);
  if (lane.place.output != nullptr) std::memset(lane.place.output, 0, c.output_elements(rank) * size);
}

}  // namespace

Status time(std::span<const Lane> lanes, const Case& c, const Timing& timing, TimeLimit& limit, Measured& measured) {
  transport::Bootstrap& bootstrap = lanes.front().communicator->bootstrap();
  std::vector<Caller> callers;
  callers.reserve(lanes.size());
  for (const Lane& lane : lanes) {
    clear(lane, c);
    callers.emplace_back(lane, c, timing.calls);
  }
  GYRE_TRY(bootstrap.barrier());
  Tally warm;
  GYRE_TRY(run(callers, timing.blocking, static_cast<uint64_t>(timing.warmup), limit, warm));
  Tally tally;
  const auto histogram = timing.percentiles ? std::make_unique<Histogram>() : nullptr;
  tally.histogram = histogram.get();
  tally.skip = static_cast<uint64_t>(timing.skip);
  GYRE_TRY(run(callers, timing.blocking, static_cast<uint64_t>(timing.iterations), limit, tally));
  if (tally.iterations == 0) GYRE_TRY(burst(callers, timing.blocking, 1, tally));  // too late, but a row has a time
  const double calls = static_cast<double>(lanes.size()) * timing.calls;
  measured.iterations = tally.iterations;
  measured.time_us = 1e6 * GYRE_TRY(over_ranks(bootstrap, tally.seconds, timing.average)) / static_cast<double>(tally.iterations) / calls;
  measured.algbw = static_cast<double>(c.bytes()) / measured.time_us / 1e3;
  measured.busbw = measured.algbw * bus_factor(*c.benchmark, c.ranks);
  if (histogram) measured.percentiles = GYRE_TRY(of_all_ranks(bootstrap, *histogram)).percentiles(calls);
  return {};
}

}  // namespace gyre::perf
