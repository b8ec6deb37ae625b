#include "schedule/verify.h"

#include "schedule/fuse.h"
#include "test/catch.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::schedule;

namespace {

std::string error_of(const Schedule& schedule, const Conditions& conditions) {
  const auto proof = verify(schedule, conditions);
  return proof ? "" : proof.error().what;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// The first condition under which the schedule does not pass; empty when it passes under all.
std::string fails_under(const Schedule& schedule, uint32_t slices) {
  for (const Mode mode : {Mode::buffered, Mode::posted}) {
    for (const bool in_place : {false, true}) {
      if (const std::string error = error_of(schedule, {2 * slices, slices, mode, in_place}); !error.empty()) return error;
    }
  }
  return {};
}

// All numbers of ranks, but fewer of the large ones under a sanitizer for threads: it makes this twenty times slower and has nothing to
// find in one thread.
#if defined(__SANITIZE_THREAD__)
constexpr bool slow = true;
#elif defined(__has_feature)
constexpr bool slow = __has_feature(thread_sanitizer);
#else
constexpr bool slow = false;
#endif
int next(int ranks) { return ranks + (slow && ranks >= 9 ? 11 : 1); }

constexpr Chunks in_0{Buffer::input, 0, 1};
constexpr Chunks out_0{Buffer::output, 0, 1};

}  // namespace

TEST_CASE("every family passes for 1 to 64 ranks") {
  for (const auto& family : topo::families()) {
    for (int ranks = 1; ranks <= 64; ranks = next(ranks)) {
      INFO(family.name << " for " << ranks << " ranks");
      const Schedule schedule = family.make(ranks, 1);
      CHECK(fails_under(schedule, 1).empty());
      CHECK(fails_under(fuse(schedule), 1).empty());
    }
  }
}

TEST_CASE("every family passes with several slices of a chunk in flight") {
  for (const auto& family : topo::families()) {
    for (int ranks = 1; ranks <= 64; ranks = next(ranks)) {
      INFO(family.name << " for " << ranks << " ranks");
      const Schedule schedule = family.make(ranks, 1);
      if (ranks <= 16) CHECK(fails_under(schedule, 4).empty());  // what runs is the fused one
      CHECK(fails_under(fuse(schedule), 4).empty());
    }
  }
}

TEST_CASE("every family passes with several channels") {
  for (const auto& family : topo::families()) {
    for (int ranks = 1; ranks <= 16; ranks = next(ranks)) {
      for (uint32_t channels = 2; channels <= 4; ++channels) {
        INFO(family.name << " for " << ranks << " ranks, " << channels << " channels");
        const Schedule schedule = family.make(ranks, channels);
        for (const uint32_t slices : {1U, 4U}) {
          CHECK(fails_under(schedule, slices).empty());
          CHECK(fails_under(fuse(schedule), slices).empty());
        }
      }
    }
  }
}

TEST_CASE("the fused ring deadlocks with one credit and not with two") {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    INFO(ranks << " ranks");
    const Schedule ring = fuse(topo::ring(ranks, 1));
    for (const bool in_place : {false, true}) {
      CHECK(contains(error_of(ring, {1, 1, Mode::buffered, in_place}), "deadlock"));
      CHECK(error_of(ring, {2, 1, Mode::buffered, in_place}).empty());
    }
  }
}

TEST_CASE("a deadlock is told with family, conditions, ranks, steps and what they wait for") {
  const auto proof = verify(fuse(topo::ring(3, 1)), {1, 1, Mode::buffered, true});
  REQUIRE_FALSE(proof);
  CHECK(proof.error().code == Code::internal);
  CHECK(
      proof.error().what ==
      "schedule ring for 3 ranks, 1 channels (1 credits, 1 slices, in place): deadlock: rank 0 step 1 (rrs) waits for a credit to rank 1; "
      "rank 1 step 1 (rrs) waits for a credit to rank 2; rank 2 step 1 (rrs) waits for a credit to rank 0;");
}

TEST_CASE("a deadlock of many ranks names the first four") {
  const std::string error = error_of(fuse(topo::ring(16, 1)), {1, 1, Mode::buffered, false});
  CHECK(contains(error, "rank 3 step 1"));
  CHECK_FALSE(contains(error, "rank 4 step 1"));
}

TEST_CASE("a receive that nobody sends to is a deadlock") {
  Builder b("lonely", 2, 1, 1);
  const Rank one = 1;
  b.step(0, {&one, 1}, in_0, out_0, {});
  CHECK(contains(error_of(std::move(b).build(), {}), "deadlock: rank 0 step 0 (rrc) waits for a message from rank 1;"));
}

TEST_CASE("what is read before it is written is named") {
  Builder b("early", 1, 1, 1);
  b.step(0, {}, out_0, out_0, {});
  CHECK(contains(error_of(std::move(b).build(), {}), "rank 0 channel 0 step 0 reads chunk 0 before it is written"));
}

TEST_CASE("a part that is missing is named by chunk and rank") {
  Builder b("selfish", 2, 1, 1);
  b.step(0, {}, in_0, out_0, {});
  b.step(1, {}, in_0, out_0, {});
  CHECK(contains(error_of(std::move(b).build(), {}), "output chunk 0 on rank 0 lacks rank 1's part"));
}

TEST_CASE("a part that is added twice is named") {
  Builder b("twice", 2, 1, 1);
  const Rank zero = 0;
  const Rank one = 1;
  b.step(0, {}, in_0, {}, {&one, 1});
  b.step(1, {&zero, 1}, in_0, out_0, {&zero, 1});
  b.step(0, {&one, 1}, in_0, out_0, {});
  CHECK(
      contains(error_of(std::move(b).build(), {}), "rank 0 channel 0 step 1 reduces r0 with (r1+r0): not the same chunk, or a part twice"));
}

TEST_CASE("chunks that do not belong together are not reduced, nor written to another's place") {
  Builder b("crossed", 1, 1, 2);
  b.step(0, {}, {Buffer::input, 0, 1}, {Buffer::output, 1, 1}, {});
  CHECK(contains(error_of(std::move(b).build(), {}), "writes chunk 0 to 1"));
}

TEST_CASE("the user's input is not written") {
  Builder b("careless", 1, 1, 1);
  b.step(0, {}, in_0, in_0, {});
  CHECK(contains(error_of(std::move(b).build(), {}), "rank 0 channel 0 step 0 writes the input"));
}

TEST_CASE("chunks and ranks that do not exist, itself and a rank twice are refused before anything is tried") {
  const auto error_with = [](auto change) {
    Schedule schedule = topo::naive(3, 1);
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
  Schedule schedule = topo::naive(2, 1);
  schedule.programs[1].steps.pop_back();
  schedule.programs[1].steps.push_back({{}, in_0, out_0, {}});
  CHECK_FALSE(error_of(schedule, {}).empty());

  Builder b("chatty", 2, 1, 1);
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
  Schedule schedule = topo::one_shot(3, 1);
  schedule.programs[1].steps.back().place = 0;
  CHECK(contains(error_of(schedule, {}), "output chunk 0 is ((r0+r1)+r2) on rank 0 and ((r1+r0)+r2) on rank 1: not the same bits"));
}

TEST_CASE("the proof says where results are complete and which are made on several ranks") {
  const auto ring = verify(topo::ring(3, 1), {});
  REQUIRE(ring);
  // s rrc s rrc | s r s r: the second reduction is the last of its chunk, and no other rank makes it.
  std::vector<bool> complete;
  for (const Fact& fact : ring->facts[0]) {
    complete.push_back(fact.complete);
    CHECK_FALSE(fact.replicated);
  }
  CHECK(complete == std::vector<bool>{false, false, false, true, false, false, false, false});

  const auto one_shot = verify(topo::one_shot(3, 1), {});
  REQUIRE(one_shot);
  for (const auto& program : one_shot->facts) {
    CHECK(program.back().complete);
    CHECK(program.back().replicated);
  }
}

TEST_CASE("a chunk belongs to one channel, since nothing orders two of them") {
  Schedule schedule = topo::ring(2, 2);
  for (Step& step : schedule.programs[2].steps) {  // channel 1 of rank 0
    if (step.dst.present()) step.dst.first = 0;
  }
  CHECK(contains(error_of(schedule, {}), "names a chunk of another channel"));
}

TEST_CASE("a list of chunks names none twice") {
  Schedule schedule = topo::ring(3, 1);
  schedule.programs[0].steps[0].src.count = 2;
  schedule.programs[0].steps[0].src.stride = 0;
  CHECK(contains(error_of(schedule, {}), "or one twice"));
}
