#include "schedule/verify.h"

#include "schedule/fuse.h"
#include "test/all_reduce.h"
#include "test/catch.h"
#include "test/schedule/script.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::schedule;
using test::contains;
using test::in_0;
using test::out_0;

namespace {

std::string error_of(const Schedule& schedule, const Conditions& conditions) {
  const auto proof = verify(schedule, conditions);
  return proof ? "" : proof.error().what;
}

}  // namespace

TEST_CASE("where peers read the sender's memory in their own time, one_shot in place has to send from scratch") {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    const Schedule one_shot = test::all_reduce("one_shot", ranks);
    CHECK(error_of(fuse(one_shot, true), {2, 1, Mode::mapped, true}) == "");
    CHECK_THAT(error_of(fuse(one_shot), {2, 1, Mode::mapped, true}),
               Catch::Contains("mapped): deadlock: rank 0 channel 0 step 1 (rrc) waits for the completion of its own send;"));
    // Slots hold a copy, a posted receive takes the message before its step, and out of place nothing is overwritten.
    CHECK(error_of(fuse(one_shot), {2, 1, Mode::buffered, true}) == "");
    CHECK(error_of(fuse(one_shot), {2, 1, Mode::posted, true}) == "");
    CHECK(error_of(fuse(one_shot), {2, 1, Mode::mapped, false}) == "");
  }
}

TEST_CASE("what is reduced and not stored goes through a slot and holds nothing") {
  // Rank 0 overwrites at once what it adds to the message it passes on.
  Builder b("passing", {Collective::reduce, 2, 1, 1}, 1);
  const Rank zero = 0;
  const Rank one = 1;
  b.step(1, {}, in_0, {}, {&zero, 1});
  b.step(0, {}, in_0, {Buffer::scratch, 0, 1}, {});
  b.step(0, {&one, 1}, {Buffer::scratch, 0, 1}, {}, {&one, 1});
  b.step(0, {}, in_0, {Buffer::scratch, 0, 1}, {});
  b.step(1, {&zero, 1}, {}, out_0, {});
  const Schedule schedule = std::move(b).build();
  for (const Mode mode : {Mode::buffered, Mode::posted, Mode::mapped}) CHECK(error_of(schedule, {1, 1, mode, false}) == "");
}

TEST_CASE("the fused ring deadlocks with one credit and not with two") {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    INFO(ranks << " ranks");
    const Schedule ring = fuse(test::all_reduce("ring", ranks, 1));
    for (const bool in_place : {false, true}) {
      CHECK(contains(error_of(ring, {1, 1, Mode::buffered, in_place}), "deadlock"));
      CHECK(error_of(ring, {2, 1, Mode::buffered, in_place}).empty());
    }
  }
}

TEST_CASE("a deadlock is told with family, conditions, ranks, steps and what they wait for") {
  const auto proof = verify(fuse(test::all_reduce("ring", 3, 1)), {1, 1, Mode::buffered, true});
  REQUIRE_FALSE(proof);
  CHECK(proof.error().code == Code::internal);
  CHECK(proof.error().what ==
        "schedule ring of all_reduce for 3 ranks, 1 channels (1 credits, 1 slices, in place): deadlock: "
        "rank 0 channel 0 step 1 (rrs) waits for a credit to rank 1; rank 1 channel 0 step 1 (rrs) waits for a credit to rank 2; "
        "rank 2 channel 0 step 1 (rrs) waits for a credit to rank 0;");
}

TEST_CASE("a deadlock of many ranks names the first four") {
  const std::string error = error_of(fuse(test::all_reduce("ring", 16, 1)), {1, 1, Mode::buffered, false});
  CHECK(contains(error, "rank 3 channel 0 step 1"));
  CHECK_FALSE(contains(error, "rank 4 channel 0 step 1"));
}

TEST_CASE("a receive that nobody sends to is a deadlock") {
  Builder b("lonely", {Collective::all_reduce, 2, 0, 1}, 1);
  const Rank one = 1;
  b.step(0, {&one, 1}, in_0, out_0, {});
  CHECK(contains(error_of(std::move(b).build(), {}), "deadlock: rank 0 channel 0 step 0 (rrc) waits for a message from rank 1;"));
}

TEST_CASE("what is read before it is written is named") {
  Builder b("early", {Collective::all_reduce, 1, 0, 1}, 1);
  b.step(0, {}, out_0, out_0, {});
  CHECK(contains(error_of(std::move(b).build(), {}), "rank 0 channel 0 step 0 reads chunk 0 before it is written"));
}

TEST_CASE("a part that is missing is named by chunk and rank") {
  Builder b("selfish", {Collective::all_reduce, 2, 0, 1}, 1);
  b.step(0, {}, in_0, out_0, {});
  b.step(1, {}, in_0, out_0, {});
  CHECK(contains(error_of(std::move(b).build(), {}), "output chunk 0 on rank 0 lacks rank 1's part"));
}

TEST_CASE("a part that is added twice is named") {
  Builder b("twice", {Collective::all_reduce, 2, 0, 1}, 1);
  const Rank zero = 0;
  const Rank one = 1;
  b.step(0, {}, in_0, {}, {&one, 1});
  b.step(1, {&zero, 1}, in_0, out_0, {&zero, 1});
  b.step(0, {&one, 1}, in_0, out_0, {});
  CHECK(contains(error_of(std::move(b).build(), {}),
                 "rank 0 channel 0 step 1 reduces r0 of chunk 0 with (r1+r0) of chunk 0: not the same chunk, or a part twice"));
}

TEST_CASE("chunks that do not belong together are not reduced, nor written to another's place") {
  Builder b("crossed", {Collective::all_reduce, 1, 0, 2}, 1);
  b.step(0, {}, {Buffer::input, 0, 1}, {Buffer::output, 1, 1}, {});
  CHECK(contains(error_of(std::move(b).build(), {}), "writes chunk 0 to 1"));
}

TEST_CASE("the user's input is not written") {
  Builder b("careless", {Collective::all_reduce, 1, 0, 1}, 1);
  b.step(0, {}, in_0, in_0, {});
  CHECK(contains(error_of(std::move(b).build(), {}), "rank 0 channel 0 step 0 writes the input"));
}

TEST_CASE("chunks and ranks that do not exist, itself and a rank twice are refused before anything is tried") {
  const auto error_with = [](auto change) {
    Schedule schedule = test::all_reduce("naive", 3, 1);
    change(schedule);
    return error_of(schedule, {});
  };
  const std::string rank = "names itself, a rank that does not exist, or one twice";
  CHECK(contains(error_with([](Schedule& s) { s.programs[1].steps[0].src.first = 1; }),
                 "rank 1 channel 0 step 0 names a chunk that does not exist"));
  CHECK(contains(error_with([](Schedule& s) { s.programs[1].steps[1].dst = {Buffer::output, 0, 2, 1}; }), "a chunk that does not exist"));
  const auto peers_of_root = [](Schedule& s) { return &s.peer_table[s.programs[0].steps[0].from.first]; };
  for (const Rank wrong : {-1, 0, 2, 3})
    CHECK(contains(error_with([&](Schedule& s) { *peers_of_root(s) = wrong; }), "rank 0 channel 0 step 0 " + rank));
  CHECK(contains(error_with([](Schedule& s) { s.peer_table[s.programs[1].steps[0].to.first] = 1; }), "rank 1 channel 0 step 0 " + rank));
}

TEST_CASE("a message that nobody receives is an error") {
  Schedule schedule = test::all_reduce("naive", 2, 1);
  schedule.programs[1].steps.pop_back();
  schedule.programs[1].steps.push_back({{}, in_0, out_0, {}});
  CHECK_FALSE(error_of(schedule, {}).empty());

  Builder b("chatty", {Collective::all_reduce, 2, 0, 1}, 1);
  const Rank zero = 0;
  const Rank one = 1;
  b.step(0, {}, in_0, {}, {&one, 1});
  b.step(1, {}, in_0, {}, {&zero, 1});
  b.step(0, {&one, 1}, in_0, out_0, {}, 1);
  b.step(1, {&zero, 1}, in_0, out_0, {}, 0);
  b.step(0, {}, out_0, {}, {&one, 1});
  CHECK(contains(error_of(std::move(b).build(), {}), "1 messages were never received"));
}

TEST_CASE("ranks that reduce in different orders have not the same bits") {
  Schedule schedule = test::all_reduce("one_shot", 3, 1);
  schedule.programs[1].steps.back().place = 0;
  CHECK(contains(error_of(schedule, {}), "output chunk 0 is ((r0+r1)+r2) on rank 0 and ((r1+r0)+r2) on rank 1: not the same bits"));
}

TEST_CASE("the proof says where results are complete and which are made on several ranks") {
  const auto ring = verify(test::all_reduce("ring", 3, 1), {});
  REQUIRE(ring);
  // s rrc s rrc | s r s r: the second reduction is the last of its chunk, and no other rank makes it.
  std::vector<bool> complete;
  for (const Fact& fact : ring->facts[0]) {
    complete.push_back(fact.complete);
    CHECK_FALSE(fact.replicated);
  }
  CHECK(complete == std::vector<bool>{false, false, false, true, false, false, false, false});

  const auto one_shot = verify(test::all_reduce("one_shot", 3, 1), {});
  REQUIRE(one_shot);
  for (const auto& program : one_shot->facts) {
    CHECK(program.back().complete);
    CHECK(program.back().replicated);
  }
}

TEST_CASE("a chunk belongs to one channel, since nothing orders two of them") {
  Schedule schedule = test::all_reduce("ring", 2, 2);
  for (Step& step : schedule.programs[2].steps) {  // channel 1 of rank 0
    if (step.dst.present()) step.dst.first = 0;
  }
  CHECK(contains(error_of(schedule, {}), "names a chunk of another channel"));
}

TEST_CASE("a list of chunks names none twice") {
  Schedule schedule = test::all_reduce("ring", 3, 1);
  schedule.programs[0].steps[0].src.count = 2;
  schedule.programs[0].steps[0].src.stride = 0;
  CHECK(contains(error_of(schedule, {}), "or one twice"));
}
