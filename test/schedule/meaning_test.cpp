#include "schedule/meaning.h"

#include "schedule/fuse.h"
#include "test/all_reduce.h"
#include "test/catch.h"
#include "test/schedule/script.h"

using namespace gyre;
using namespace gyre::schedule;
using test::none;
using test::Script;

namespace {

constexpr Chunks input(uint32_t chunk, uint32_t count = 1, uint32_t stride = 1) { return {Buffer::input, chunk, count, stride}; }
constexpr Chunks output(uint32_t chunk, uint32_t count = 1, uint32_t stride = 1) { return {Buffer::output, chunk, count, stride}; }
constexpr Chunks scratch(uint32_t chunk, uint32_t count = 1, uint32_t stride = 1) { return {Buffer::scratch, chunk, count, stride}; }

/// What is wrong with it; empty: it computes the collective.
std::string fault(const Schedule& schedule, bool in_place = false) {
  const auto proof = verify(schedule, {8, 1, Mode::buffered, in_place});
  return proof ? "" : proof.error().what.substr(proof.error().what.find("): ") + 3);
}

}  // namespace

TEST_CASE("the plainest schedule of every collective is what the collective means") {
  const std::vector<std::pair<Collective, Script>> plain = [] {
    std::vector<std::pair<Collective, Script>> all;
    for (const Collective c : all_collectives()) all.emplace_back(c, Script(c, 2, 1, 0, 1, 1));
    const auto of = [&](Collective c) -> Script& { return all[static_cast<size_t>(c)].second; };
    of(Collective::all_reduce).step(0, {}, input(0), none, {1}).step(0, {1}, none, output(0), {});
    of(Collective::all_reduce).step(1, {0}, input(0), output(0), {0});
    of(Collective::reduce_scatter).step(0, {}, input(1), none, {1}).step(0, {1}, input(0), output(0), {});
    of(Collective::reduce_scatter).step(1, {}, input(0), none, {0}).step(1, {0}, input(1), output(0), {});
    for (const Rank r : {0, 1}) {
      const auto own = static_cast<uint32_t>(r);
      of(Collective::all_gather).step(r, {}, input(0), output(own), {1 - r}).step(r, {1 - r}, none, output(1 - own), {});
      of(Collective::all_to_all).step(r, {}, input(1 - own), none, {1 - r}).step(r, {}, input(own), output(own), {});
      of(Collective::all_to_all).step(r, {1 - r}, none, output(1 - own), {});
    }
    of(Collective::broadcast).step(1, {}, input(0), output(0), {0}).step(0, {1}, none, output(0), {});
    of(Collective::reduce).step(0, {}, input(0), none, {1}).step(1, {0}, input(0), output(0), {});
    of(Collective::gather).step(0, {}, input(0), none, {1}).step(1, {0}, none, output(0), {}).step(1, {}, input(0), output(1), {});
    of(Collective::scatter).step(1, {}, input(0), none, {0}).step(1, {}, input(1), output(0), {}).step(0, {1}, none, output(0), {});
    return all;
  }();
  for (const auto& [collective, script] : plain) {
    INFO(name(collective));
    CHECK(fault(script) == "");
    if (collective != Collective::all_to_all) CHECK(fault(script, true) == "");
    for (const auto& [other, unused] : plain) {  // and none is another
      if (other == collective) continue;
      Schedule renamed = script;
      renamed.collective = other;
      CHECK(fault(renamed) != "");
    }
  }
}

TEST_CASE("there is no all-to-all in place") {
  CHECK(fault(Script(Collective::all_to_all, 1, 1).step(0, {}, input(0), output(0), {}), true) == "there is no in place");
}

TEST_CASE("a block at the wrong place is named with what is there and what belongs there") {
  Script s(Collective::all_gather, 2, 1);
  s.step(0, {}, input(0), output(0), {1}).step(0, {1}, none, output(1), {});
  s.step(1, {}, input(0), output(0), {0}).step(1, {0}, none, output(1), {});
  CHECK(fault(s) == "output chunk 0 on rank 1 is r1 and not r0");
  CHECK(fault(Script(Collective::scatter, 1, 2).step(0, {}, input(0), output(0), {})) == "output chunk 1 on rank 0 is never written");
  Script t(Collective::scatter, 2, 1);
  t.step(0, {}, input(0), output(0), {1}).step(1, {0}, none, output(0), {});
  CHECK(fault(t) == "output chunk 0 on rank 1 is of input chunk 0 and not of 1");
}

TEST_CASE("ranks touch no buffer that they do not have") {
  Script reads(Collective::broadcast, 2, 1);
  reads.step(0, {}, input(0), output(0), {1}).step(1, {0}, input(0), output(0), {});
  CHECK(fault(reads) == "rank 1 channel 0 step 0 reads an input, which this rank does not have");
  Script writes(Collective::reduce, 2, 1);
  writes.step(1, {}, input(0), output(0), {0}).step(0, {1}, input(0), output(0), {});
  CHECK(fault(writes) == "rank 1 channel 0 step 0 uses an output, which this rank does not have");
}

TEST_CASE("chunks of different blocks are of one size at the same place only") {
  // Three chunks to a block: chunk 4 of the input is the middle of rank 1's block.
  const auto via = [](uint32_t chunk) {
    Script s(Collective::scatter, 2, 3, 6);
    s.step(0, {}, input(0, 3), output(0, 3), {}).step(0, {}, input(3, 3), none, {1});
    s.step(1, {0}, none, scratch(chunk, 3), {}).step(1, {}, scratch(chunk, 3), output(0, 3), {});
    return s;
  };
  CHECK(fault(via(3)) == "");
  CHECK(fault(via(0)) == "");
  CHECK(fault(via(1)) == "rank 1 channel 0 step 0 writes chunk 3 to 1, which is not of its size");
}

TEST_CASE("chunks in the memory that a step reads are not overwritten for others") {
  const auto shifted = [](uint32_t by) {
    Script s(Collective::scatter, 1, 1, 4);
    s.step(0, {}, input(0), output(0), {}).step(0, {}, output(0), scratch(0), {}).step(0, {}, output(0), scratch(1), {});
    s.step(0, {}, scratch(0, 2), scratch(by, 2), {});
    return s;
  };
  CHECK(fault(shifted(0)) == "");
  CHECK(fault(shifted(1)) == "rank 0 channel 0 step 3 overwrites chunks that it reads for others");
  CHECK(fault(shifted(2)) == "");
}

TEST_CASE("in place, the input is not read after the output was written over it") {
  // What would be read holds the result, but an average would scale it once more, as an input.
  Script s(Collective::all_reduce, 2, 1);
  s.step(0, {1}, input(0), output(0), {}, 0).step(0, {}, output(0), none, {1});
  s.step(1, {}, input(0), none, {0}).step(1, {0}, none, output(0), {}).step(1, {}, input(0), output(0), {});
  CHECK(fault(s, true) == "rank 1 channel 0 step 2 reads chunk 0 of the input after it was overwritten in place");
  Script early(Collective::all_reduce, 2, 1);
  early.step(0, {}, output(0), none, {1}).step(0, {1}, input(0), output(0), {});
  early.step(1, {}, input(0), none, {0}).step(1, {0}, input(0), output(0), {}, 0);
  CHECK(fault(early, true) == "rank 0 channel 0 step 0 reads chunk 0 before it is written");
}

TEST_CASE("a step whose chunks are not all complete would be divided in part") {
  Script s(Collective::reduce, 3, 2);
  s.step(1, {}, input(0, 2), none, {0});
  s.step(2, {}, input(0), none, {0}).step(2, {}, input(1), none, {0});
  s.step(0, {2}, input(0), output(0), {}).step(0, {}, input(1), output(1), {});
  s.step(0, {1}, output(0, 2), output(0, 2), {}).step(0, {2}, output(1), output(1), {});
  CHECK(fault(s) == "rank 0 channel 0 step 2 completes some of its chunks and not all");
}

TEST_CASE("a part that is there twice, and another not at all, is named by the step that did it") {
  Script s(Collective::reduce, 3, 1);
  s.step(1, {}, input(0), none, {0}).step(1, {}, input(0), none, {0});
  s.step(0, {1}, input(0), output(0), {}).step(0, {1}, output(0), output(0), {});
  CHECK(fault(s) == "rank 0 channel 0 step 1 reduces (r0+r1) with r1: a part twice");
}

TEST_CASE("messages that nobody receives are told with the step that sent the first") {
  Script s(Collective::broadcast, 2, 1);
  s.step(0, {}, input(0), output(0), {1}).step(0, {}, input(0), none, {1}).step(0, {}, input(0), none, {1});
  s.step(1, {0}, none, output(0), {});
  CHECK(fault(s) == "2 messages were never received, the first from rank 0 channel 0 step 1");
}

TEST_CASE("a message of another number of chunks than its receiver names is refused") {
  const auto with = [](uint32_t count) {
    Script s(Collective::broadcast, 2, 3);
    s.step(0, {}, input(0, 3), output(0, 3), {1});
    s.step(1, {0}, none, output(0, count), {});
    return s;
  };
  CHECK(fault(with(3)) == "");
  CHECK(fault(with(2)) == "rank 1 channel 0 step 0 writes 2 chunks from 3");
}

TEST_CASE("the facts of all chunks of a step are told together") {
  Script s(Collective::all_reduce, 2, 2);
  s.step(0, {}, input(0, 2), none, {1}).step(0, {1}, input(0, 2), output(0, 2), {}, 0);
  s.step(1, {}, input(0, 2), none, {0}).step(1, {0}, input(0, 2), output(0, 2), {}, 1);
  const auto proof = verify(s, {2, 1, Mode::buffered, false});
  REQUIRE(proof);
  for (const auto& facts : proof->facts) {
    CHECK_FALSE(facts[0].complete);
    CHECK(facts[1].complete);
    CHECK(facts[1].replicated);
  }
}

TEST_CASE("one verifier gives under every condition what one of its own would") {
  for (const bool broken : {false, true}) {
    Schedule schedule = fuse(test::all_reduce("ring", 4, 2));
    if (broken) std::swap(schedule.programs[5].steps[0], schedule.programs[5].steps[1]);
    Verifier verifier(schedule);
    for (const Mode mode : {Mode::mapped, Mode::buffered, Mode::posted}) {
      for (const uint32_t credits : {2U, 1U, 3U}) {
        for (const bool in_place : {true, false}) {
          const Conditions conditions{credits, 1, mode, in_place};
          const auto together = verifier.run(conditions);
          const auto alone = verify(schedule, conditions);
          REQUIRE(static_cast<bool>(together) == static_cast<bool>(alone));
          if (!alone) CHECK(together.error().what == alone.error().what);
        }
      }
    }
  }
}
