#include "schedule/direct.h"

#include "schedule/renamed.h"
#include "test/catch.h"
#include "topo/families.h"

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

TEST_CASE("a mapped form of a schedule that reduces each chunk at once computes the same, in its order, in place and not") {
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast, Collective::reduce}) {
    for (int ranks = 2; ranks <= 9; ++ranks) {
      for (Rank root = 0; root < (rooted(collective) ? ranks : 1); ++root) {
        const bool by_blocks = collective == Collective::reduce_scatter || collective == Collective::all_gather;
        const Schedule schedule = (by_blocks ? topo::one_shot : topo::two_shot)({collective, ranks, 1, root, {}});
        const Direct direct = mapped(schedule);
        for (const bool in_place : {false, true}) CHECK(fault(direct, in_place) == "");
        for (const auto& passes : direct.passes) CHECK(passes.size() <= 1);
        if (!reduces(collective)) continue;
        std::vector<Rank> order(static_cast<size_t>(ranks));
        for (Rank r = 0; r < ranks; ++r) order[static_cast<size_t>((r + 2) % ranks)] = r;
        const auto other = renamed(schedule, std::vector<RankOrder>{order});
        REQUIRE(other);
        CHECK(mapped(*other).order == order);
        CHECK(fault(mapped(*other), true) == "");
      }
    }
  }
}

TEST_CASE("schedules that reduce in parts, or each chunk on all ranks, have no mapped form") {
  CHECK(fault(mapped(topo::ring({Collective::all_reduce, 4, 1, 0, {}})), false) != "");
  CHECK(fault(mapped(topo::one_shot({Collective::all_reduce, 4, 1, 0, {}})), false) != "");
  CHECK(fault(mapped(topo::two_shot({Collective::all_reduce, 4, 1, 0, {}, true})), false) != "");
  Schedule schedule = topo::two_shot({Collective::all_reduce, 3, 1, 0, {}});
  for (Program& program : schedule.programs) {  // one rank in another order
    for (Step& step : program.steps) {
      if (program.rank == 1 && step.reduces()) step.place = 0;
    }
  }
  CHECK(fault(mapped(schedule), false) == "output[1] of rank 0 is not made of its parts in the order of ranks");
}

TEST_CASE("a direct form whose order leaves a rank out is refused") {
  Direct direct = mapped(all_reduce);
  direct.order = {0, 1, 1};
  CHECK(fault(direct, false) == "parts are reduced in an order that is not one of all ranks");
}

TEST_CASE("a direct form with an output that nobody writes is refused") {
  Direct direct = mapped(all_reduce);
  direct.passes[1][0].to.pop_back();
  CHECK(fault(direct, false) == "output[1] of rank 2 is not written");
}

TEST_CASE("a direct form with a pass that writes nothing is refused") {
  Direct direct = mapped(all_reduce);
  direct.passes[1].push_back({direct.passes[1][0].from, {}});
  CHECK(fault(direct, false) == "pass 1 of rank 1 leads nowhere");
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

TEST_CASE("what other ranks touch of a rank's buffers is all but its own share or block") {
  using Chunks = std::set<uint32_t>;
  const auto touched = [](Collective collective) { return touched_by_others(mapped({collective, 3, 0, 1}), 1); };
  const Touched shared = touched(Collective::all_reduce);
  CHECK((shared.read == Chunks{0, 2} && shared.written == Chunks{0, 2}));
  const Touched scattered = touched(Collective::reduce_scatter);
  CHECK((scattered.read == Chunks{0, 2} && scattered.written.empty()));
  const Touched gathered = touched(Collective::all_gather);
  CHECK((gathered.read == Chunks{0} && gathered.written.empty()));
}
