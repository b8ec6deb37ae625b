// From batches of messages to figures: what counts, bandwidth, message rate, latency. Pure, so that it is tested without a plugin.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gyre::perf {

struct NetBatch {
  double seconds;
  double waited;  ///< the share of it in which a rank was ready to run and had no processor
};
/// Those that count: the undisturbed ones, or all where they are too few.
std::vector<size_t> batches_that_count(std::span<const NetBatch>);
double average_wait(std::span<const NetBatch>, const std::vector<size_t>& counting);

struct NetBandwidth {
  uint64_t messages = 0;  ///< of all connections and directions, in a batch
  double seconds = 0;     ///< of the median batch
  double waited = 0;      ///< of the batches that count, on average
  size_t batches = 0;     ///< that count

  double gigabytes_per_s(size_t bytes) const;
  double messages_per_s() const;
};

/// The same of batches that each moved so many messages; at least one.
NetBandwidth bandwidth_of(std::span<const NetBatch>, uint64_t messages);

/// Half of the time of a message there and back.
struct NetLatency {
  size_t round_trips = 0;
  double p50_us = 0, p99_us = 0, mean_us = 0;
  double waited = 0;
  size_t batches = 0;
};
/// Of round trips, in nanoseconds, at least one; reorders them.
NetLatency latency_of(std::vector<uint32_t>& round_trips);

}  // namespace gyre::perf
