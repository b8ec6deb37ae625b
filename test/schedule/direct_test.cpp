#include "schedule/direct.h"

#include "test/catch.h"

using namespace gyre;
using namespace gyre::schedule;

namespace {

std::string named(const Layout& layout, const char* form, bool in_place) {
  return std::string(name(layout.collective)) + " of " + std::to_string(layout.ranks) + ", root " + std::to_string(layout.root) + ", " +
         form + (in_place ? ", in place" : "");
}

/// The first form that does not compute its collective.
std::string first_fault(int ranks) {
  for (const Collective collective : all_collectives()) {
    for (Rank root = 0; root < (rooted(collective) ? ranks : 1); ++root) {
      const Layout layout{collective, ranks, root, 1};
      for (const bool in_place : {false, true}) {
        if (in_place && !layout.has_in_place()) continue;
        if (const auto wrong = fault(staged(layout), in_place); !wrong.empty()) return named(layout, "staged: ", in_place) + wrong;
        if (const auto wrong = fault(schedule::read(layout), in_place); !wrong.empty() && !reduces(collective))
          return named(layout, "read: ", in_place) + wrong;
        if (const auto wrong = fault(mapped(layout), in_place); !wrong.empty()) return named(layout, "mapped: ", in_place) + wrong;
      }
    }
  }
  return {};
}

constexpr Layout all_reduce{Collective::all_reduce, 3, 0, 1};

}  // namespace

TEST_CASE("direct forms compute every collective between 1 to 17 ranks, in place and not") {
  for (int ranks = 1; ranks <= 17; ++ranks) CHECK(first_fault(ranks) == "");
  CHECK(first_fault(64) == "");
}

TEST_CASE("mapped reductions and broadcasts share the work among all ranks") {
  for (const Collective collective : {Collective::all_reduce, Collective::reduce, Collective::broadcast}) {
    const Direct direct = mapped({collective, 5, 2, 1});
    for (const auto& passes : direct.passes) {
      REQUIRE(passes.size() == 1);
      CHECK(passes[0].to.size() == (collective == Collective::reduce ? 1 : 5));
    }
  }
}

TEST_CASE("a direct form with an output that nobody writes is refused") {
  Direct direct = mapped(all_reduce);
  direct.passes[1][0].to.pop_back();
  CHECK(fault(direct, false) == "output[1] of rank 2 is not written");
}

TEST_CASE("a direct form with an output that two write is refused") {
  Direct direct = mapped(all_reduce);
  direct.passes[2].push_back(direct.passes[1][0]);
  CHECK(fault(direct, false) == "output[1] of rank 0 is written twice");
}

TEST_CASE("a direct form that reduces in another order on some rank is refused") {
  Direct direct = mapped(all_reduce);
  std::swap(direct.passes[1][0].from[0], direct.passes[1][0].from[1]);
  CHECK(fault(direct, false) == "output[1] of rank 0 is not made of its parts in the order of ranks");
}

TEST_CASE("a direct form that leaves a rank's part out is refused") {
  Direct direct = staged(all_reduce);
  direct.passes[2][0].from.pop_back();
  CHECK(fault(direct, false) == "output[0] of rank 2 is not made of its parts in the order of ranks");
}

TEST_CASE("a staged form that writes another rank's output is refused") {
  Direct direct = staged(all_reduce);
  direct.passes[2][0].to[0].rank = 1;
  CHECK(fault(direct, false) == "rank 2 cannot reach output[0] of rank 1");
}

// Out of place it is right, since nobody writes inputs.
TEST_CASE("a mapped form whose ranks write in place what others still read is refused") {
  Direct direct = staged(all_reduce);
  direct.staged = false;
  CHECK(fault(direct, false) == "");
  CHECK(fault(direct, true) == "memory of rank 0 that rank 0 writes is read by rank 1");
}
