#include "perf/net_figures.h"

#include <array>
#include <cstring>
#include <vector>

#include "perf/net_pattern.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;

TEST_CASE("a message's pattern is found right, and every changed, missing or foreign byte of it wrong") {
  for (const size_t bytes : std::initializer_list<size_t>{0, 1, 7, 8, 9, 15, 16, 1000}) {
    std::vector<std::byte> data(bytes);
    fill_pattern(data, 5);
    CHECK(count_wrong_bytes(data, 5) == 0);
    for (size_t i = 0; i < bytes; ++i) {
      data[i] ^= std::byte{0x10};
      REQUIRE(count_wrong_bytes(data, 5) == 1);
      data[i] ^= std::byte{0x10};
    }
  }
}

TEST_CASE("patterns of neighbouring messages, and of places that are 8 bytes apart, differ") {
  std::vector<std::byte> data(4096);
  fill_pattern(data, 7);
  CHECK(count_wrong_bytes(data, 6) > data.size() / 2);
  CHECK(count_wrong_bytes(data, 8) > data.size() / 2);
  std::memmove(data.data(), data.data() + 8, data.size() - 8);
  CHECK(count_wrong_bytes(data, 7) > data.size() / 2);
}

TEST_CASE("a latency is half of a round trip, with its median, its 99th percentile and its mean") {
  std::vector<uint32_t> round_trips;
  for (uint32_t i = 1; i <= 1000; ++i) round_trips.push_back((1001 - i) * 2000);  // 1 to 1000 us one way, longest first
  const NetLatency latency = latency_of(round_trips);
  CHECK(latency.round_trips == 1000);
  CHECK(latency.p50_us == 501);
  CHECK(latency.p99_us == 991);
  CHECK(latency.mean_us == 500.5);
}

TEST_CASE("a single round trip has all figures") {
  std::vector<uint32_t> round_trips{3000};
  const NetLatency latency = latency_of(round_trips);
  CHECK(latency.p50_us == 1.5);
  CHECK(latency.p99_us == 1.5);
  CHECK(latency.mean_us == 1.5);
}

TEST_CASE("bandwidth is bytes, and the rate messages, by the time they took") {
  NetBandwidth bandwidth;
  bandwidth.messages = 3000;
  bandwidth.seconds = 1.5;
  CHECK(bandwidth.messages_per_s() == 2000);
  CHECK(bandwidth.gigabytes_per_s(1000000) == 2);
}

TEST_CASE("disturbed batches are left out where three others are left") {
  const std::vector<NetBatch> batches{{1, 0}, {9, 0.5}, {2, 0.01}, {9, 0.02}, {3, 0}};
  CHECK(batches_that_count(batches) == std::vector<size_t>{0, 2, 4});
  const NetBandwidth bandwidth = bandwidth_of(batches, 100);
  CHECK(bandwidth.seconds == 2);
  CHECK(bandwidth.batches == 3);
  CHECK(bandwidth.messages_per_s() == 50);
  CHECK(bandwidth.waited < 0.01);
}

TEST_CASE("all batches count where too few are undisturbed") {
  const std::vector<NetBatch> batches{{1, 0}, {9, 0.5}, {2, 0}, {8, 0.4}, {7, 0.6}};
  CHECK(batches_that_count(batches).size() == batches.size());
  const NetBandwidth bandwidth = bandwidth_of(batches, 100);
  CHECK(bandwidth.seconds == 7);
  CHECK(bandwidth.waited == Approx(0.3));
}
