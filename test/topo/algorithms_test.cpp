#include "topo/algorithms.h"

#include <set>

#include "test/catch.h"
#include "test/schedule/plain_executor.h"

using namespace gyre;
using namespace gyre::topo;

TEST_CASE("families are found by their names, others are not") {
  std::set<std::string_view> names;
  for (const Family& family : families()) {
    names.insert(family.name);
    CHECK(family_named(family.name) == &family);
    CHECK(family.make(3, 1).family == family.name);
  }
  CHECK(names == std::set<std::string_view>{"ring", "naive", "one_shot"});
  CHECK(family_named("auto") == nullptr);
  CHECK(family_named("") == nullptr);
}

TEST_CASE("a schedule has the shape that was asked for") {
  for (const Family& family : families()) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      for (uint32_t channels = 1; channels <= 4; ++channels) {
        const auto schedule = family.make(ranks, channels);
        INFO(family.name << " for " << ranks << " ranks, " << channels << " channels");
        CHECK(schedule.ranks == ranks);
        CHECK(schedule.channels == channels);
        CHECK(schedule.chunks % channels == 0);
        CHECK(schedule.programs.size() == static_cast<size_t>(ranks) * channels);
        CHECK(schedule.program(ranks - 1, channels - 1).rank == ranks - 1);
        CHECK(schedule.program(ranks - 1, channels - 1).channel == channels - 1);
        CHECK(schedule.longest_message() == 1);
      }
    }
  }
}

TEST_CASE("every family agrees with naive on random integers") {
  for (int ranks = 1; ranks <= 64; ++ranks) {
    for (const Family& family : families()) {
      for (const bool in_place : {false, true}) {
        INFO(family.name << " for " << ranks << " ranks");
        const auto seed = static_cast<uint64_t>(ranks);
        const auto schedule = family.make(ranks, 1);
        CHECK(test::PlainExecutor(schedule, in_place, seed).all_reduces());
      }
    }
  }
}

TEST_CASE("every family agrees with naive on several channels") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const Family& family : families()) {
      const auto schedule = family.make(ranks, 3);
      INFO(family.name << " for " << ranks << " ranks");
      CHECK(test::PlainExecutor(schedule, false, 3).all_reduces());
      CHECK(test::PlainExecutor(schedule, true, 3).all_reduces());
    }
  }
}

TEST_CASE("the ring sends 2(N-1) messages of one chunk of N, to the next rank only") {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    const auto schedule = ring(ranks, 1);
    CHECK(schedule.chunks == static_cast<uint32_t>(ranks));
    for (const auto& program : schedule.programs) {
      int messages = 0;
      for (const auto& step : program.steps) {
        for (const Rank peer : schedule.peers(step.to)) {
          CHECK(peer == (program.rank + 1) % ranks);
          ++messages;
        }
      }
      CHECK(messages == 2 * (ranks - 1));
    }
  }
}

TEST_CASE("one_shot and naive reduce in the order of ranks") {
  for (const auto& schedule : {one_shot(4, 1), naive(4, 1)}) {
    for (const auto& program : schedule.programs) {
      for (const auto& step : program.steps) {
        if (!step.reduces()) continue;
        const auto from = schedule.peers(step.from);
        std::vector<Rank> order(from.begin(), from.end());
        order.insert(order.begin() + step.place, program.rank);
        CHECK(order == std::vector<Rank>{0, 1, 2, 3});
      }
    }
  }
}

TEST_CASE("a job of one rank copies") {
  for (const Family& family : families()) {
    const auto schedule = family.make(1, 2);
    for (const auto& program : schedule.programs) {
      REQUIRE(program.steps.size() == 1);
      CHECK(operation(program.steps[0]) == "c");
    }
  }
}
