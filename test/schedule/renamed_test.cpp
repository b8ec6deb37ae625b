#include "schedule/renamed.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "schedule/fuse.h"
#include "schedule/verify.h"
#include "test/catch.h"
#include "test/schedule/schedules.h"
#include "test/text.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::schedule;
using gyre::test::error_of;

namespace {

/// Rank r on host r % hosts; hosts one after the other.
RankOrder by_hosts(int ranks, int hosts) {
  RankOrder order;
  for (int host = 0; host < hosts; ++host) {
    for (Rank rank = host; rank < ranks; rank += hosts) order.push_back(rank);
  }
  return order;
}

RankOrder shuffled(int ranks, unsigned seed) {
  RankOrder order(static_cast<size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

std::string wrong(const Schedule& schedule) {
  for (const bool in_place : {false, true}) {
    if (in_place && !schedule.layout().has_in_place()) continue;
    const auto proof = Verifier(schedule).run({4, 2, Mode::posted, in_place, false});
    if (!proof) return proof.error().what;
  }
  return {};
}

}  // namespace

TEST_CASE("a schedule in any order of ranks is right, or is refused where ranks have blocks") {
  size_t refused = 0, blocks = 0;
  for (int ranks = 2; ranks <= 9; ++ranks) {
    test::each_schedule(ranks, 2, [&](const Schedule& made) {
      const bool of_blocks = made.layout().input_blocks() > 1 || made.layout().output_blocks() > 1;
      const RankOrder order = shuffled(ranks, static_cast<unsigned>(ranks));
      const auto other = renamed(fuse(made), {&order, 1});
      INFO(made.family << " of " << ranks << ": " << name(made.collective) << ": " << error_of(other));
      if (other) {
        CHECK(wrong(*other) == "");
        CHECK(other->root == order[static_cast<size_t>(made.root)]);
      } else {
        CHECK(of_blocks);
        CHECK(error_of(other).find("not evenly spaced") != std::string::npos);
      }
      blocks += of_blocks, refused += !other;
    });
  }
  CHECK(refused > 0);
  CHECK(refused < blocks / 2);
}

TEST_CASE("rings, and what goes along the lines of hosts, can have ranks that are dealt to hosts in turn") {
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
    for (const char* family : {"ring", "hierarchical", "one_shot"}) {
      const auto made =
          topo::make(family, {collective, 12, 2, 0, family == std::string("hierarchical") ? std::vector{4, 3} : std::vector<int>()});
      const RankOrder order = by_hosts(12, 3);
      const auto other = renamed(fuse(*made), {&order, 1});
      INFO(family << ": " << name(collective) << ": " << error_of(other));
      REQUIRE(other);
      CHECK(wrong(*other) == "");
    }
  }
}

TEST_CASE("channels may have orders of their own, with one root") {
  const std::vector<RankOrder> orders{{0, 1, 2, 3, 4}, {2, 4, 1, 3, 0}};
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
    const auto other = renamed(*topo::make("ring", {collective, 5, 4, 0, {}}), orders);
    REQUIRE(other);
    CHECK(wrong(*other) == "");
    CHECK(other->peers(other->program(3, 1).steps[0].to)[0] == 1);  // odd channels of a ring go backwards
  }
  const Schedule sent = *topo::make("ring", {Collective::broadcast, 5, 2, 1, {}});
  CHECK(error_of(renamed(sent, orders)) == "orders with rank 1 and rank 4 as the root");
  const std::vector<RankOrder> one_root{{0, 1, 2, 3, 4}, {2, 1, 4, 3, 0}};
  CHECK(wrong(*renamed(sent, one_root)) == "");
}

TEST_CASE("the order of numbers changes nothing, and what is no order is refused") {
  const Schedule made = *topo::make("double_tree", {Collective::all_reduce, 4, 1, 0, {}});
  const RankOrder same{0, 1, 2, 3};
  CHECK(*renamed(made, {&same, 1}) == made);
  for (const RankOrder& odd : {RankOrder{0, 1, 2}, RankOrder{0, 1, 2, 2}, RankOrder{0, 1, 2, 4}, RankOrder{-1, 0, 1, 2}}) {
    CHECK(error_of(renamed(made, {&odd, 1})).starts_with("no order of 4 ranks: "));
  }
  CHECK(error_of(renamed(made, {})) == "no order of ranks");
}
