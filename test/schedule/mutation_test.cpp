// The proof against the plain executor: whatever does not compute its collective is refused.
#include <random>

#include "schedule/fuse.h"
#include "schedule/verify.h"
#include "test/schedule/mutants.h"
#include "test/schedule/plain_executor.h"
#include "test/schedule/schedules.h"
#include "test/schedule/script.h"

using namespace gyre;
using namespace gyre::schedule;

namespace {

bool works(const Schedule& schedule, bool in_place, Mode mode, int interleavings) {
  for (int seed = 0; seed < interleavings; ++seed) {
    if (!test::PlainExecutor(schedule, in_place, static_cast<uint64_t>(seed), mode == Mode::mapped).computes()) return false;
  }
  return true;
}

// What the plain executor does, it does as slots do, or as mapped memory does.
constexpr Mode modes[] = {Mode::buffered, Mode::mapped};

struct Count {
  size_t tried = 0;   // mutants, in place and not, in both modes
  size_t broken = 0;  // don't compute the collective in some interleaving
  size_t missed = 0;  // and pass all the same
  size_t strict = 0;  // compute it in all interleavings that were tried, and are refused
};

void try_mutant(const std::string& what, const Schedule& mutant, Count& count) {
  Verifier verifier(mutant);
  for (const Mode mode : modes) {
    for (const bool in_place : {false, true}) {
      if (in_place && !mutant.layout().has_in_place()) continue;
      const auto proof = verifier.run({64, 1, mode, in_place});
      const bool computes = works(mutant, in_place, mode, proof ? 8 : 3);
      ++count.tried;
      if (!computes) ++count.broken;
      if (computes && !proof) ++count.strict;
      if (computes || !proof) continue;
      ++count.missed;
      UNSCOPED_INFO("not refused" << (in_place ? " in place" : "") << (mode == Mode::mapped ? " mapped: " : ": ") << what);
    }
  }
}

/// At most about `limit` mutants of a schedule, chosen by seed.
void try_mutants(const Schedule& original, size_t limit, Count& count) {
  size_t all = 0;
  test::Mutants(original).each([&](const std::string&, const Schedule&) { ++all; });
  std::mt19937_64 random(all);
  test::Mutants(original).each([&](const std::string& what, const Schedule& mutant) {
    if (random() % all < limit) try_mutant(what, mutant, count);
  });
}

}  // namespace

TEST_CASE("every mutant of a schedule that no longer computes the collective is refused", "[long]") {
  Count count;
  for (const int ranks : {2, 3, 4, 6}) {
    for (const uint32_t channels : {1U, 2U}) {
      if (channels == 2 && ranks != 3) continue;
      test::each_schedule(ranks, channels, [&](const Schedule& original) {
        for (const bool fused : {false, true}) {
          const Schedule schedule = fused ? fuse(original, true) : original;
          for (const Mode mode : modes) {
            for (const bool in_place : {false, true}) {
              if (!in_place || schedule.layout().has_in_place()) REQUIRE(works(schedule, in_place, mode, 3));
            }
          }
          try_mutants(schedule, 60, count);
          CHECK(count.missed == 0);
        }
      });
    }
  }
  INFO(count.tried << " tried, " << count.broken << " broken, " << count.strict << " of the others refused");
  CHECK(count.broken > count.tried / 2);  // else this says little
}

TEST_CASE("so is every mutant of a schedule with strands") {
  // A tree of 5 ranks, up on strand 0 and down on strand 1, for two chunks.
  Count count;
  test::Script tree(Collective::all_reduce, 5, 2, 0, 2);
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    const Chunks in{Buffer::input, chunk, 1};
    const Chunks out{Buffer::output, chunk, 1};
    tree.on(0).step(0, {1, 2}, in, out, {1, 2});
    tree.on(0).step(1, {3, 4}, in, {}, {0}).step(2, {}, in, {}, {0}).step(3, {}, in, {}, {1}).step(4, {}, in, {}, {1});
    tree.on(1).step(1, {0}, {}, out, {3, 4}).step(2, {0}, {}, out, {}).step(3, {1}, {}, out, {}).step(4, {1}, {}, out, {});
  }
  try_mutants(tree, SIZE_MAX, count);
  CHECK(count.missed == 0);
  CHECK(count.broken > count.tried / 2);
}
