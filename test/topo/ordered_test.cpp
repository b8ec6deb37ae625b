// Which families sum by the canonical tree when they are asked to, by proof, and that what is run then is proven in every mode.
#include "schedule/fuse.h"
#include "schedule/verify.h"
#include "test/catch.h"
#include "test/slow_builds.h"
#include "test/topo/shapes.h"
#include "topo/constants.h"
#include "topo/profile.h"
#include "topo/select.h"

using namespace gyre;
using namespace gyre::topo;
using schedule::Mode;

namespace {

bool power_of_two(int n) { return (n & (n - 1)) == 0; }

Order order_of(std::string_view family, Shape shape) {
  shape.ordered = true;
  return order(*family_named(family), shape);
}

/// Empty: the fused schedule is proven, ordered, in all modes in which it runs.
std::string flaw(const schedule::Schedule& fused, std::span<const Mode> modes) {
  schedule::Verifier verifier(fused);
  for (const Mode mode : modes) {
    for (const bool in_place : {false, true}) {
      const auto proof = verifier.run({8, 4, mode, in_place, true});
      if (!proof) return proof.error().what;
    }
  }
  return {};
}

constexpr Mode by_message[] = {Mode::buffered, Mode::posted};
constexpr Mode by_mapping[] = {Mode::mapped};

}  // namespace

TEST_CASE("every schedule that sums by the canonical tree is proven in every mode, and the others say which sum is not of it") {
  for (int ranks = 1; ranks <= (test::sanitized ? 9 : 40); ++ranks) {
    test::each_shape(ranks, [&](const Family& family, Shape shape) {
      if (!reduces(shape.collective)) return;
      shape.ordered = true;
      shape.channels = 1 + static_cast<uint32_t>(ranks) % 3;
      INFO(family.name << ": " << text(shape));
      const Order found = order(family, shape);
      if (!found.refusal.empty()) {
        CHECK(found.refusal.starts_with("not in the order of ranks: rank "));
        return;
      }
      const schedule::Schedule made = *make(family.name, shape);
      CHECK(flaw(schedule::fuse(made), by_message) == "");
      CHECK(flaw(schedule::fuse(made, true), by_mapping) == "");
    });
  }
}

TEST_CASE("families in the order of ranks keep the canonical tree for every number of ranks, grid of a power of two, and root") {
  using enum Collective;
  for (int ranks = 1; ranks <= 64; ++ranks) {
    INFO(ranks << " ranks");
    for (const Rank root : test::roots(ranks, reduce)) {
      CHECK(order_of("naive", {reduce, ranks, 1, root, {}}).refusal == "");
      CHECK(order_of("tree", {reduce, ranks, 1, root, {}}).refusal == "");
      CHECK(order_of("two_shot", {reduce, ranks, 1, root, {}}).refusal == "");
    }
    for (const Collective c : {all_reduce, reduce_scatter}) {
      CHECK(order_of("naive", {c, ranks, 1, 0, {}}).refusal == "");
      CHECK(order_of("one_shot", {c, ranks, 1, 0, {}}).refusal == "");
    }
    CHECK(order_of("two_shot", {all_reduce, ranks, 1, 0, {}}).refusal == "");
    CHECK(order_of("tree", {all_reduce, ranks, 1, 0, {}}).refusal == "");
    CHECK(order_of("halving_doubling", {all_reduce, ranks, 1, 0, {}}).refusal == "");
    for (int local = 1; local <= ranks; ++local) {
      if (ranks % local != 0 || !power_of_two(local)) continue;
      CHECK(order_of("hierarchical", {all_reduce, ranks, 1, 0, {local, ranks / local}}).refusal == "");
      CHECK(order_of("hierarchical", {reduce_scatter, ranks, 1, 0, {local, ranks / local}}).refusal == "");
    }
  }
}

TEST_CASE("what goes around a ring begins with another rank for every part, and is refused with the sum that shows it") {
  CHECK(order_of("ring", {Collective::all_reduce, 2, 1, 0, {}}).refusal == "");
  const std::string refusal = order_of("ring", {Collective::all_reduce, 3, 1, 0, {}}).refusal;
  CHECK(refusal == "not in the order of ranks: rank 2 channel 0 step 1 reduces r1 with r2: not a sum of the canonical tree");
  CHECK(order_of("hierarchical", {Collective::all_reduce, 9, 1, 0, {3, 3}}).refusal != "");
  CHECK(order_of("double_tree", {Collective::all_reduce, 8, 1, 0, {}}).refusal != "");
}

TEST_CASE("parts travel as they are, and partial sums only where sums are made step by step") {
  for (const std::string_view name : {"naive", "one_shot", "two_shot"}) {
    INFO(name);
    CHECK_FALSE(order_of(name, {Collective::all_reduce, 6, 1, 0, {}}).sends_partial);
  }
  for (const std::string_view name : {"tree", "halving_doubling"}) {
    INFO(name);
    CHECK(order_of(name, {Collective::all_reduce, 6, 1, 0, {}}).sends_partial);
    CHECK_FALSE(order_of(name, {Collective::all_reduce, 2, 1, 0, {}}).sends_partial);
  }
}

TEST_CASE("the profile of an ordered schedule is that of the schedule walked") {
  for (const std::string_view name : {"naive", "tree", "halving_doubling", "one_shot", "two_shot", "hierarchical"}) {
    for (const int ranks : {1, 2, 3, 4, 6, 8, 12}) {
      const Shape shape{Collective::all_reduce,
                        ranks,
                        1,
                        0,
                        name == "hierarchical" ? std::vector{ranks % 2 + 1, ranks / (ranks % 2 + 1)} : std::vector<int>(),
                        true};
      if (!refusal(*family_named(name), shape).empty()) continue;
      INFO(name << ": " << text(shape));
      const Profile walked = profile(schedule::fuse(*make(name, shape)), {});
      const Profile known = *profile(name, shape, {});
      CHECK(known.longest_message == walked.longest_message);
      CHECK(known.port[inside].chunks == walked.port[inside].chunks);
      CHECK(known.processor[0].reduced == walked.processor[0].reduced);
    }
  }
}

TEST_CASE("in ordered numerics the choice is among those that keep the tree, and partial sums cost their width") {
  Query query;
  query.ranks = 6;
  query.block_bytes = 1 << 20;
  query.ordered = true;
  query.costs = *default_constants()->machine("host");
  Profiles profiles;
  const Choice narrow = choose(query, profiles);
  REQUIRE(narrow.best() != nullptr);
  for (const Candidate& c : narrow.candidates) {
    INFO(c.family << " " << c.refused);
    CHECK(c.shape.ordered);
    if (c.refused.empty()) CHECK(order(*family_named(c.family), c.shape).refusal == "");
  }
  CHECK(narrow.cheapest("ring") == nullptr);
  CHECK(explain(query, narrow).find("not a sum of the canonical tree") != std::string::npos);
  query.partial_widths = 2;
  const Choice wide = choose(query, profiles);
  CHECK(wide.cheapest("two_shot")->price.seconds == narrow.cheapest("two_shot")->price.seconds);
  CHECK(wide.cheapest("halving_doubling")->price.seconds > 1.5 * narrow.cheapest("halving_doubling")->price.seconds);
}

TEST_CASE("ranks that are too many to be looked at are refused, not run unproven") {
  CHECK(order_of("naive", {Collective::all_reduce, 1025, 1, 0, {}}).refusal ==
        "ordered schedules of more than 1024 ranks are not looked at");
  CHECK(order_of("tree", {Collective::all_reduce, 1025, 1, 0, {}}).refusal == "");
}
