#include "perf/measure.h"

#include <fmt/format.h>

#include <array>

#include "perf/sweep.h"
#include "perf/sweep_buffer.h"
#include "test/catch.h"
#include "test/ranks.h"

using namespace gyre;
using namespace gyre::perf;
using gyre::test::all_configured;
using gyre::test::first_wrong;
using gyre::test::run_ranks;
using gyre::test::Words;

namespace {

const auto loopback = all_configured({"GYRE_TRANSPORT=loopback"});

struct Row1 {
  Measured measured;
  std::string wrong;
};

// One row, out of place, of 256 bytes; what the rank measured, or why not.
Row1 row(engine::Communicator& communicator, const Benchmark& benchmark, const Timing& timing, std::optional<double> limit_seconds = {}) {
  Row1 row;
  const Case c = case_of(benchmark, communicator.size(), 256, DataType::float32, ReduceOp::sum, 0);
  const auto input = SweepBuffer::allocate(4096);
  const auto output = SweepBuffer::allocate(4096);
  const std::array lanes{Lane{&communicator, out_of_place(c, communicator.rank(), input->data(), output->data())}};
  TimeLimit limit(limit_seconds);
  for (const Status& status : {check(lanes, c, 2, limit, row.measured), time(lanes, c, timing, limit, row.measured)}) {
    if (!status) row.wrong = status.error().what;
  }
  return row;
}

}  // namespace

TEST_CASE("every way of blocking and averaging makes the iterations asked for, and gives right results") {
  for (const Benchmark* benchmark : {&benchmark_of(Collective::all_reduce), &benchmark_of(Collective::broadcast), &send_and_receive()}) {
    for (const Blocking blocking : {Blocking::none, Blocking::barrier_timed, Blocking::call, Blocking::barrier_untimed}) {
      const Timing timing{.warmup = 2, .iterations = 30, .calls = 3, .blocking = blocking, .percentiles = true, .skip = 10};
      const Words words = run_ranks(3, loopback, [&](engine::Communicator& communicator) -> std::string {
        const Row1 r = row(communicator, *benchmark, timing);
        if (!r.wrong.empty()) return r.wrong;
        const Measured& m = r.measured;
        if (m.iterations != 30 || m.wrong != 0 || !m.checked || !(m.time_us > 0))
          return fmt::format("{} iterations, {} wrong", m.iterations, m.wrong);
        if (!m.percentiles || m.percentiles->iterations != 3 * 20) return "percentiles are not those of 20 iterations of 3 ranks";
        const Percentiles& p = *m.percentiles;
        const bool ascending = 0 < p.min_us && p.min_us <= p.p50_us && p.p50_us <= p.p90_us && p.p90_us <= p.p99_us && p.p99_us <= p.max_us;
        return ascending ? "" : "percentiles do not ascend";
      });
      INFO(benchmark->name << ", blocking " << static_cast<int>(blocking));
      CHECK(first_wrong(words).empty());
    }
  }
}

TEST_CASE("all ranks have the same figure, and the least is not above the most") {
  std::array<double, 4> time_us{};
  for (const Average average : {Average::rank_0, Average::mean, Average::least, Average::most}) {
    const Words words = run_ranks(3, loopback, [&](engine::Communicator& communicator) {
      const Row1 r = row(communicator, benchmark_of(Collective::all_reduce), {.average = average});
      if (communicator.rank() == 0) time_us[static_cast<size_t>(average)] = r.measured.time_us;
      return fmt::format("{}{}", r.wrong, r.measured.time_us);
    });
    CHECK((words[0] == words[1] && words[1] == words[2]));
    CHECK(time_us[static_cast<size_t>(average)] > 0);
  }
}

TEST_CASE("a limit that is over leaves one iteration, on every rank") {
  const Words words = run_ranks(2, loopback, [](engine::Communicator& communicator) {
    const Row1 r = row(communicator, benchmark_of(Collective::all_reduce), {.warmup = 1000000, .iterations = 1000000}, 1e-9);
    return fmt::format("{}{} {}", r.wrong, r.measured.iterations, r.measured.time_us > 0);
  });
  for (const std::string& word : words) CHECK(word == "1 true");
}

TEST_CASE("a limit within a row ends it on all ranks after as many iterations") {
  const Words words = run_ranks(2, loopback, [](engine::Communicator& communicator) {
    const Row1 r = row(communicator, benchmark_of(Collective::all_reduce), {.iterations = 1 << 30}, 0.02);
    return fmt::format("{}{}", r.wrong, r.measured.iterations);
  });
  CHECK(words[0] == words[1]);
  CHECK(words[0].size() < 9);
}
