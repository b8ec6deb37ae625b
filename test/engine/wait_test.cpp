// How ranks wait, by GYRE_WAIT: collectives are right whatever it says, and a rank that sleeps leaves its processor to others.
#include "engine/wait.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <future>
#include <limits>
#include <thread>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/backends.h"
#include "test/engine/job_memory.h"
#include "test/ranks.h"
#include "test/slow_builds.h"

using namespace gyre;
using namespace gyre::engine;
using namespace std::chrono_literals;
using gyre::test::all_configured;
using gyre::test::configured;
using gyre::test::first_wrong;
using gyre::test::run_ranks;

namespace {

const std::vector<std::string> ways{"auto", "spin", "yield", "sleep"};

/// Some collectives, small and large, of small slots, so that ranks also wait for credits.
std::string collectives_right(Communicator& communicator) {
  for (const size_t count : {size_t{2}, size_t{5003}}) {
    for (const Collective collective :
         {Collective::all_reduce, Collective::broadcast, Collective::all_to_all, Collective::reduce_scatter}) {
      const Call call{collective, count, DataType::int32, ReduceOp::sum, 0};
      test::JobMemory<int32_t> memory(call, communicator.size(), false);
      const Buffers buffers = memory.buffers(communicator.rank());
      const Status status = communicator.run(call, buffers.input, buffers.output);
      const std::string wrong = status ? memory.wrong(communicator.rank()) : status.error().what;
      if (!wrong.empty()) return fmt::format("{} of {}: {}", name(collective), count, wrong);
    }
  }
  return {};
}

std::chrono::microseconds thread_time() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  const auto us = [](const timeval& t) { return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec); };
  return us(used.ru_utime) + us(used.ru_stime);
}

/// A job of three ranks, on one host, or the third on another: then by shared memory and a network.
struct Place {
  std::string transport;
  bool two_hosts = false;
  test::RankConfig config(const std::string& wait) const {
    return [*this, wait](Rank rank) {
      return configured({"GYRE_TRANSPORT=" + transport, "GYRE_WAIT=" + wait, two_hosts && rank == 2 ? "GYRE_HOSTID=b" : "GYRE_HOSTID=a"});
    };
  }
};

/// Where what comes wakes a rank that sleeps: all but verbs.
std::vector<Place> places() {
  std::vector<Place> all;
  bool verbs = false;
  for (const std::string& backend : test::backends()) {
    verbs |= backend == "verbs";
    if (backend != "verbs") all.push_back({backend});
  }
  if (!verbs) all.push_back({"auto", true});
  return all;
}

/// In each of these at once: they sleep.
template <class Measure>
auto in_all_places(Measure measure) {
  std::vector<std::pair<std::string, std::future<decltype(measure(places()[0]))>>> all;
  for (const Place& place : places()) all.emplace_back(place.transport, std::async(std::launch::async, measure, place));
  return all;
}

/// What rank 0 says is the least of three tries, since what else runs on the machine adds to it.
struct Measured {
  long most = -1;  ///< by the board, or by messages
  std::string error;
};
template <class Try>
Measured least_of_three(const test::RankConfig& config, Try one) {
  std::atomic<long> most = -1;
  const std::string wrong = first_wrong(run_ranks(3, config, [&](Communicator& communicator) {
    std::string error;
    for (const char* algorithm : {"auto", "ring"}) {  // by the board, by messages
      communicator.prefer({algorithm, {}});
      std::vector<int32_t> data(1000, 1);
      const auto reduce_all = [&] {
        const Status status = communicator.all_reduce(data.data(), data.data(), data.size(), DataType::int32, ReduceOp::max);
        if (!status) error = status.error().what;
      };
      long least = std::numeric_limits<long>::max();
      for (int tries = 0; tries < 3; ++tries) {
        reduce_all();
        least = std::min(least, one(communicator.rank(), reduce_all));
      }
      if (communicator.rank() == 0) most = std::max<long>(most, least);
    }
    return error;
  }));
  return {most, wrong};
}

long in_ms(std::chrono::steady_clock::duration time) { return std::chrono::duration_cast<std::chrono::milliseconds>(time).count(); }

/// Rank 0 waits in a call that the others make 200 ms later. What its processor did meanwhile, in ms.
Measured waiting_cost(const test::RankConfig& config) {
  return least_of_three(config, [](Rank rank, const auto& reduce_all) {
    const auto before = thread_time();
    if (rank != 0) std::this_thread::sleep_for(200ms);
    reduce_all();
    return in_ms(thread_time() - before);
  });
}

/// The ranks make 100 calls, each of them in turn 1 ms after the others. How long the median call takes, in ms: not their sum, to which
/// adds whoever else has the processors for a while.
Measured waking_time(const test::RankConfig& config) {
  return least_of_three(config, [](Rank rank, const auto& reduce_all) {
    std::vector<long> calls;
    while (calls.size() < 100) {
      const auto before = std::chrono::steady_clock::now();
      if (static_cast<Rank>(calls.size() % 3) == rank) std::this_thread::sleep_for(1ms);
      reduce_all();
      calls.push_back(in_ms(std::chrono::steady_clock::now() - before));
    }
    std::nth_element(calls.begin(), calls.begin() + 50, calls.end());
    return calls[50];
  });
}

}  // namespace

TEST_CASE("collectives are right however ranks wait") {
  for (const char* transport : {"shm", "loopback", "tcp"}) {
    for (const std::string& way : ways) {
      for (const int ranks : {2, 4, 8}) {
        if (test::sanitized && ranks == 8) continue;
        const auto config = all_configured({fmt::format("GYRE_TRANSPORT={}", transport), "GYRE_WAIT=" + way, "GYRE_SLOT_BYTES=4K"});
        INFO(transport << ", " << way << ", " << ranks << " ranks");
        CHECK(first_wrong(run_ranks(ranks, config, collectives_right)).empty());
      }
    }
  }
}

TEST_CASE("ranks may wait in different ways") {
  const auto config = [](Rank rank) { return configured({"GYRE_TRANSPORT=shm", "GYRE_WAIT=" + ways[static_cast<size_t>(rank) % 4]}); };
  CHECK(first_wrong(run_ranks(5, config, collectives_right)).empty());
}

TEST_CASE("a rank that sleeps leaves its processor to others", "[transport]") {
  const std::string way = GENERATE("sleep", "auto");  // which comes to it
  for (auto& [transport, cost] : in_all_places([&](const Place& place) { return waiting_cost(place.config(way)); })) {
    INFO(transport << ", " << way);
    const Measured measured = cost.get();
    CHECK(measured.error == "");
    CHECK(measured.most < 20);
  }
}

// One that is not woken sleeps for 10 ms.
TEST_CASE("a rank that sleeps is woken by what comes", "[transport]") {
  for (const Place& place : places()) {
    INFO(place.transport);
    const Measured measured = waking_time(place.config("sleep"));
    CHECK(measured.error == "");
    CHECK(measured.most < 9);
  }
}

TEST_CASE("how long a rank waits in which way follows from GYRE_WAIT and from its host") {
  const Patience free = Patience::of("auto", {});
  const Patience crowded = Patience::of("auto", {.crowded = true});
  CHECK(crowded.spins < free.spins);
  CHECK(crowded.looks < free.looks);
  CHECK_FALSE(free.for_ever);
  CHECK(Patience::of("spin", {}).for_ever);
  CHECK(Patience::of("yield", {}).yields == std::chrono::nanoseconds::max());
  CHECK(Patience::of("sleep", {}).yields == 0ns);
}
