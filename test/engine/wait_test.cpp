// How ranks wait, by GYRE_WAIT: collectives are right whatever it says, and a rank that sleeps leaves its processor to others.
#include "engine/wait.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <limits>
#include <thread>

#include "engine/communicator.h"
#include "test/catch.h"
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

/// Rank 0 waits in a call that the others make 200 ms later. What its processor did meanwhile, in ms; the least of three tries, since what
/// else runs on the machine adds to it.
long waiting_cost(const std::vector<std::string>& settings) {
  std::atomic<long> cost = -1;
  const std::string wrong = first_wrong(run_ranks(3, all_configured(settings), [&](Communicator& communicator) {
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
        const auto before = thread_time();
        if (communicator.rank() != 0) std::this_thread::sleep_for(200ms);
        reduce_all();
        least = std::min<long>(least, std::chrono::duration_cast<std::chrono::milliseconds>(thread_time() - before).count());
      }
      if (communicator.rank() == 0) cost = std::max<long>(cost, least);
    }
    return error;
  }));
  CHECK(wrong.empty());
  return cost;
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

TEST_CASE("a rank that sleeps leaves its processor to others") {
  CHECK(waiting_cost({"GYRE_TRANSPORT=shm", "GYRE_WAIT=sleep"}) < 20);
  CHECK(waiting_cost({"GYRE_TRANSPORT=loopback", "GYRE_WAIT=sleep"}) < 20);
  CHECK(waiting_cost({"GYRE_TRANSPORT=shm"}) < 20);  // auto comes to it
}

TEST_CASE("a rank that sleeps looks at the network now and then") { CHECK(waiting_cost({"GYRE_TRANSPORT=tcp", "GYRE_WAIT=sleep"}) < 100); }

TEST_CASE("how long a rank waits in which way follows from GYRE_WAIT and from its host") {
  const Patience free = Patience::of("auto", {});
  const Patience crowded = Patience::of("auto", {true, false, false, nullptr});
  CHECK(crowded.spins < free.spins);
  CHECK(crowded.looks < free.looks);
  CHECK_FALSE(free.for_ever);
  CHECK(Patience::of("spin", {}).for_ever);
  CHECK(Patience::of("yield", {}).yields == std::chrono::nanoseconds::max());
  CHECK(Patience::of("sleep", {}).yields == 0ns);
}
