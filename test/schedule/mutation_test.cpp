#include "schedule/fuse.h"
#include "schedule/verify.h"
#include "test/catch.h"
#include "test/schedule/mutants.h"
#include "test/schedule/plain_executor.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::schedule;

namespace {

/// Passes under all conditions that a run needs.
bool verified(const Schedule& schedule) {
  for (const Mode mode : {Mode::buffered, Mode::posted}) {
    for (const bool in_place : {false, true}) {
      if (!verify(schedule, {2, 1, mode, in_place})) return false;
    }
  }
  return true;
}

bool works(const Schedule& schedule) {
  return test::PlainExecutor(schedule, false, 1).all_reduces() && test::PlainExecutor(schedule, true, 2).all_reduces();
}

}  // namespace

TEST_CASE("every mutant of a schedule that no longer computes the all-reduce is refused") {
  for (const auto& family : topo::families()) {
    for (const int ranks : {3, 4, 5}) {
      for (const bool fused : {false, true}) {
        const Schedule original = fused ? fuse(family.make(ranks, 1)) : family.make(ranks, 1);
        REQUIRE(verified(original));
        REQUIRE(works(original));
        size_t broken = 0;
        size_t caught = 0;
        const test::Mutants mutants(original);
        for (const test::Mutant& mutant : mutants.all()) {
          if (works(mutant.schedule)) continue;
          ++broken;
          const bool refused = !verified(mutant.schedule);
          if (refused) ++caught;
          if (!refused) UNSCOPED_INFO("not refused: " << mutant.what);
        }
        INFO(family.name << " for " << ranks << " ranks" << (fused ? ", fused: " : ": ") << mutants.all().size() << " mutants, " << broken
                         << " broken");
        CHECK(caught == broken);
        CHECK(broken > mutants.all().size() / 2);  // else this says little
      }
    }
  }
}
