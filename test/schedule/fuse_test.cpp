#include "schedule/fuse.h"

#include <map>
#include <tuple>

#include "schedule/print.h"
#include "test/all_reduce.h"
#include "test/catch.h"
#include "test/schedule/plain_executor.h"
#include "test/schedule/schedules.h"

using namespace gyre;
using namespace gyre::schedule;

namespace {

/// How many chunks flow over each connection, message by message.
auto messages(const Schedule& schedule) {
  std::map<std::tuple<Rank, Rank, uint32_t>, std::vector<uint32_t>> all;
  for (const Program& program : schedule.programs) {
    for (const Step& step : program.steps) {
      for (const Rank peer : schedule.peers(step.to)) all[{program.rank, peer, program.channel}].push_back(step.flow().count);
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
  for (int ranks = 1; ranks <= 12; ++ranks) {
    test::each_schedule(ranks, static_cast<uint32_t>(ranks % 3 + 1), [&](const Schedule& schedule) {
      for (const bool staged : {false, true}) {
        const Schedule fused = fuse(schedule, staged);
        CHECK(test::PlainExecutor(fused, false, 5).computes());
        if (fused.layout().has_in_place()) CHECK(test::PlainExecutor(fused, true, 6).computes());
      }
    });
  }
}

TEST_CASE("fusing keeps the order of messages on every connection") {
  for (int ranks = 1; ranks <= 12; ++ranks) {
    test::each_schedule(ranks, 2, [](const Schedule& schedule) {
      const auto before = messages(schedule);
      CHECK(messages(fuse(schedule)) == before);
      CHECK(messages(fuse(schedule, true)) == before);
    });
  }
}

TEST_CASE("a rank of the fused ring takes 2N-1 steps instead of 4(N-1)") {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    const auto n = static_cast<size_t>(ranks);
    const Schedule ring = test::all_reduce("ring", ranks, 1);
    const Schedule fused = fuse(ring);
    for (size_t rank = 0; rank < n; ++rank) {
      CHECK(ring.programs[rank].steps.size() == 4 * (n - 1));
      CHECK(fused.programs[rank].steps.size() == 2 * n - 1);
    }
  }
}

TEST_CASE("the fused ring stores no partial sum that nobody reads") {
  CHECK(operations(fuse(test::all_reduce("ring", 4, 1)).programs[2]) ==
        std::vector<std::string>{"s", "rrs", "rrs", "rrcs", "rcs", "rcs", "r"});
}

TEST_CASE("naive has nothing to fuse") {
  for (const int ranks : {1, 2, 5}) CHECK(print(fuse(test::all_reduce("naive", ranks, 1))) == print(test::all_reduce("naive", ranks, 1)));
}

TEST_CASE("one_shot sends from scratch only where it has to") {
  const Schedule one_shot = test::all_reduce("one_shot", 3, 1);
  CHECK(print(fuse(one_shot, true)) == print(one_shot));
  CHECK(fuse(one_shot, true).scratch == 1);
  CHECK("\n" + print(fuse(one_shot)) == R"(
step  rank 0                  rank 1                  rank 2
   0  s in[0] >1,2            s in[0] >0,2            s in[0] >0,1
   1  rrc <1,2 in[0] =out[0]  rrc <0,2 in[0] =out[0]  rrc <0,1 in[0] =out[0]
)");
  CHECK(fuse(one_shot).scratch == 0);
}

TEST_CASE("fusing twice changes nothing more") {
  test::each_schedule(5, 2, [](const Schedule& schedule) {
    const Schedule once = fuse(schedule);
    CHECK(print(fuse(once)) == print(once));
  });
}

TEST_CASE("a partial sum that is read later is kept") {
  const Rank peer = 1;
  Builder b("kept", {Collective::all_reduce, 2, 0, 1}, 1);
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
  Builder b("other", {Collective::all_reduce, 2, 0, 2}, 1);
  b.step(0, {&peer, 1}, {}, {Buffer::output, 0, 1}, {});
  b.step(0, {}, {Buffer::input, 1, 1}, {}, {&peer, 1});
  // The copy of the chunk that was sent is the builder's, and joins the send.
  CHECK(operations(fuse(std::move(b).build()).programs[0]) == std::vector<std::string>{"r", "cs"});
}
