#include "perf/net_figures.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace gyre::perf {
namespace {

constexpr size_t fewest_undisturbed = 3;
constexpr double disturbed = 0.02;

}  // namespace

double average_wait(std::span<const NetBatch> batches, const std::vector<size_t>& counting) {
  double sum = 0;
  for (const size_t i : counting) sum += batches[i].waited;
  return sum / static_cast<double>(counting.size());
}

double NetBandwidth::gigabytes_per_s(size_t bytes) const { return static_cast<double>(bytes) * messages_per_s() / 1e9; }
double NetBandwidth::messages_per_s() const { return static_cast<double>(messages) / seconds; }

std::vector<size_t> batches_that_count(std::span<const NetBatch> batches) {
  std::vector<size_t> all(batches.size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::vector<size_t> quiet;
  std::copy_if(all.begin(), all.end(), std::back_inserter(quiet), [&](size_t i) { return batches[i].waited < disturbed; });
  return quiet.size() >= fewest_undisturbed ? quiet : all;
}

NetBandwidth bandwidth_of(std::span<const NetBatch> batches, uint64_t messages) {
  const std::vector<size_t> counting = batches_that_count(batches);
  std::vector<double> seconds;
  seconds.reserve(counting.size());
  for (const size_t i : counting) seconds.push_back(batches[i].seconds);
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return {messages, *middle, average_wait(batches, counting), counting.size()};
}

NetLatency latency_of(std::vector<uint32_t>& round_trips) {
  const size_t count = round_trips.size();
  const auto at = [&](size_t index) {
    const auto place = round_trips.begin() + static_cast<std::ptrdiff_t>(index);
    std::nth_element(round_trips.begin(), place, round_trips.end());
    return *place / 2e3;
  };
  NetLatency latency;
  latency.round_trips = count;
  latency.mean_us = std::accumulate(round_trips.begin(), round_trips.end(), 0.0) / static_cast<double>(count) / 2e3;
  latency.p50_us = at(count / 2);
  latency.p99_us = at(std::min(count - 1, count * 99 / 100));
  return latency;
}

}  // namespace gyre::perf
