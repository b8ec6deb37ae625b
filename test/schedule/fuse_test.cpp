#include "schedule/fuse.h"

#include <map>
#include <tuple>

#include "schedule/print.h"
#include "test/catch.h"
#include "test/schedule/plain_executor.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::schedule;

namespace {

/// The chunks that flow over each connection, in order.
auto messages(const Schedule& schedule) {
  std::map<std::tuple<Rank, Rank, uint32_t>, std::vector<uint32_t>> all;
  for (const Program& program : schedule.programs) {
    for (const Step& step : program.steps) {
      for (const Rank peer : schedule.peers(step.to)) all[{program.rank, peer, program.channel}].push_back(step.flow().first);
    }
  }
  return all;
}

std::vector<std::string> operations(const Program& program) {
  std::vector<std::string> all;
  for (const Step& step : program.steps) all.push_back(operation(step));
  return all;
}

}  // namespace

TEST_CASE("a fused schedule computes the same") {
  for (const auto& family : topo::families()) {
    for (int ranks = 1; ranks <= 16; ++ranks) {
      INFO(family.name << " for " << ranks << " ranks");
      for (const bool in_place : {false, true}) {
        CHECK(test::PlainExecutor(fuse(family.make(ranks, 2)), in_place, 5).all_reduces());
      }
    }
  }
}

TEST_CASE("fusing keeps the order of messages on every connection") {
  for (const auto& family : topo::families()) {
    for (int ranks = 1; ranks <= 16; ++ranks) {
      INFO(family.name << " for " << ranks << " ranks");
      const Schedule schedule = family.make(ranks, 2);
      CHECK(messages(fuse(schedule)) == messages(schedule));
    }
  }
}

TEST_CASE("a rank of the fused ring takes 2N-1 steps instead of 4(N-1)") {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    const auto n = static_cast<size_t>(ranks);
    const Schedule ring = topo::ring(ranks, 1);
    const Schedule fused = fuse(ring);
    for (size_t rank = 0; rank < n; ++rank) {
      CHECK(ring.programs[rank].steps.size() == 4 * (n - 1));
      CHECK(fused.programs[rank].steps.size() == 2 * n - 1);
    }
  }
}

TEST_CASE("the fused ring stores no partial sum that nobody reads") {
  CHECK(operations(fuse(topo::ring(4, 1)).programs[2]) == std::vector<std::string>{"s", "rrs", "rrs", "rrcs", "rcs", "rcs", "r"});
}

TEST_CASE("naive and one_shot have nothing to fuse") {
  for (const int ranks : {1, 2, 5}) {
    CHECK(print(fuse(topo::naive(ranks, 1))) == print(topo::naive(ranks, 1)));
    CHECK(print(fuse(topo::one_shot(ranks, 1))) == print(topo::one_shot(ranks, 1)));
  }
}

TEST_CASE("fusing twice changes nothing more") {
  for (const auto& family : topo::families()) {
    const Schedule once = fuse(family.make(5, 2));
    CHECK(print(fuse(once)) == print(once));
  }
}

TEST_CASE("a partial sum that is read later is kept") {
  const Rank peer = 1;
  Builder b("kept", 2, 1, 1);
  b.step(0, {&peer, 1}, {Buffer::input, 0, 1}, {Buffer::output, 0, 1}, {});
  b.step(0, {}, {Buffer::output, 0, 1}, {}, {&peer, 1});
  SECTION("as the result") {}
  SECTION("by a step, before it is overwritten") {
    b.step(0, {}, {Buffer::output, 0, 1}, {}, {&peer, 1});
    b.step(0, {&peer, 1}, {}, {Buffer::output, 0, 1}, {});
  }
  SECTION("in place, by a step that reads the input") {
    b.step(0, {}, {Buffer::input, 0, 1}, {}, {&peer, 1});
    b.step(0, {&peer, 1}, {}, {Buffer::output, 0, 1}, {});
  }
  CHECK(operation(fuse(std::move(b).build()).programs[0].steps[0]) == "rrcs");
}

TEST_CASE("a send of something else than was just received stays a step") {
  const Rank peer = 1;
  Builder b("other", 2, 1, 2);
  b.step(0, {&peer, 1}, {}, {Buffer::output, 0, 1}, {});
  b.step(0, {}, {Buffer::input, 1, 1}, {}, {&peer, 1});
  const auto ops = operations(fuse(std::move(b).build()).programs[0]);
  CHECK(std::vector<std::string>(ops.begin(), ops.begin() + 2) == std::vector<std::string>{"r", "s"});
}
