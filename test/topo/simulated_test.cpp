// Choices beside what the simulator has of all that may be better.
#include "topo/simulated.h"

#include <limits>

#include "schedule/fuse.h"
#include "schedule/simulate.h"
#include "test/catch.h"
#include "topo/constants.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

// A call of so many bytes in all, as the engine asks.
Query asked(Collective collective, std::string_view machine, int ranks, int per_node, double bytes) {
  Query query;
  query.collective = collective;
  query.ranks = ranks;
  query.placement = {per_node};
  const schedule::Layout layout{collective, ranks, 0, 1};
  query.block_bytes = bytes / std::max(layout.input_blocks(), layout.output_blocks());
  query.channels = 2;
  query.shape_channels = 1;
  query.costs = *default_constants()->machine(machine);
  return query;
}

// Of the choice over that of the best: times of calls that were played to the end.
double regret(const Query& query) {
  Profiles profiles;
  const Choice choice = choose(query, profiles);
  double chosen = std::numeric_limits<double>::infinity();
  double best = chosen;
  for (Candidate c : choice.candidates) {
    if (!c.refused.empty() || weighed(query, c.price) > 1.5 * weighed(query, *choice.best())) continue;
    c.simulated = *simulated_seconds(query, c.family, c.shape, query.block_bytes);
    if (c.family == choice.best()->family && c.shape.grid == choice.best()->shape.grid) chosen = weighed(query, c);
    best = std::min(best, weighed(query, c));
  }
  return chosen / best;
}

constexpr double KiB = 1024, MiB = 1024 * 1024;

}  // namespace

TEST_CASE("where prices are nearer to each other than to the simulated times, what is chosen takes nearly as long as the best", "[long]") {
  const struct {
    Collective collective;
    std::string_view machine;
    int ranks, per_node;
    double bytes;
  } by_price_above[] = {
      {Collective::all_reduce, "gpu_cluster", 8, 0, MiB},       {Collective::all_reduce, "gpu_cluster", 128, 8, 2 * MiB},
      {Collective::all_reduce, "host", 8, 1, 16 * KiB},         {Collective::all_reduce, "host", 8, 1, 512 * KiB},
      {Collective::all_reduce, "host_tcp", 64, 4, 2 * MiB},     {Collective::all_gather, "gpu_cluster", 8, 0, 512 * KiB},
      {Collective::all_gather, "gpu_cluster", 128, 8, MiB},     {Collective::all_gather, "host", 8, 1, 512 * KiB},
      {Collective::reduce_scatter, "gpu_cluster", 128, 8, MiB}, {Collective::reduce_scatter, "host", 8, 1, 512 * KiB},
      {Collective::broadcast, "gpu_cluster", 8, 0, 4 * MiB},    {Collective::broadcast, "host", 8, 1, 32 * KiB},
      {Collective::broadcast, "host", 8, 1, 4 * MiB},           {Collective::broadcast, "host", 8, 1, 16 * MiB},
      {Collective::broadcast, "host_tcp", 64, 4, 512 * KiB},    {Collective::reduce, "gpu_cluster", 8, 0, 64 * KiB},
      {Collective::reduce, "gpu_cluster", 8, 0, 4 * MiB},
  };
  for (const auto& call : by_price_above) {
    INFO(name(call.collective) << " of " << call.bytes << " bytes, " << call.ranks << " ranks, " << call.per_node << " a node, "
                               << call.machine);
    CHECK(regret(asked(call.collective, call.machine, call.ranks, call.per_node, call.bytes)) <= 1.05);
  }
}

TEST_CASE("of 512 ranks the choice takes nearly as long as the best", "[long]") {
  for (const double bytes : {MiB, 2 * MiB, 2.25 * MiB, 4 * MiB}) {
    INFO(bytes);
    CHECK(regret(asked(Collective::all_reduce, "gpu_cluster", 512, 8, bytes)) <= 1.05);
  }
}

TEST_CASE("what is counted for a simulation is no less than what it has") {
  for (const Family& family : families()) {
    for (const int ranks : {2, 5, 8, 16}) {
      const Query query = asked(Collective::all_reduce, "host", ranks, ranks == 16 ? 4 : 0, 3e5);
      Shape shape{query.collective, ranks, 1, 0, {}};
      if (ranks == 16 && family.grid == GridUse::nodes) shape.grid = {4, 4};
      if (!refusal(family, shape).empty() || lacks_nodes(family, shape)) continue;
      INFO(family.name << ", " << ranks << " ranks");
      const schedule::Schedule made = schedule::fuse(*make(family.name, shape));
      const auto steps = schedule::hop_by_hop(made)->steps.size(), messages = schedule::hop_by_hop(made)->messages.size();
      const Profile counts = *profile(family.name, shape, query.placement);
      const double pieces = events(query, counts, query.block_bytes) / events(query, counts, 1);
      CHECK(pieces >= 1);
      CHECK(events(query, counts, 1) >= static_cast<double>(steps + messages));
    }
  }
}

TEST_CASE("of long calls the first rounds say how long the others take") {
  for (const std::string_view family : {"ring", "double_tree", "two_shot"}) {
    Profiles profiles;
    const Query query = asked(Collective::all_reduce, "host", 4, 1, 128 * MiB);
    const Shape shape{query.collective, 4, 1, 0, {}};
    INFO(family);
    const auto sampled = sampled_seconds(query, *profiles.of(family, shape, query.placement), family, shape, query.block_bytes);
    REQUIRE(sampled.has_value());
    CHECK(*sampled == Approx(*simulated_seconds(query, family, shape, query.block_bytes)).epsilon(0.03));
  }
}

TEST_CASE(
    "nothing is played of thousands of ranks, of ranks that share processors, where times were measured or links differ, or unasked") {
  const auto played = [](const Query& query) {
    Profiles profiles;
    const Choice choice = choose(query, profiles);
    return std::ranges::any_of(choice.candidates, [](const Candidate& c) { return c.simulated.has_value(); });
  };
  const Query few = asked(Collective::all_reduce, "host", 8, 0, MiB);
  CHECK(played(few));
  CHECK_FALSE(played(asked(Collective::all_reduce, "gpu_cluster", 4096, 1, 8)));
  Query crowded = few;
  crowded.costs.processors_per_node = 2;
  CHECK_FALSE(played(crowded));
  Query unlike = few;
  unlike.overrides = {{0, 1, 2, false}};
  CHECK_FALSE(played(unlike));
  Query timed = few;
  timed.costs.measured = {{Collective::all_reduce, 8, 0, {MiB}, {{"ring", {}, {1e-3}}}}};
  CHECK_FALSE(played(timed));
  Query unasked = few;
  unasked.plays = false;
  CHECK_FALSE(played(unasked));
}

TEST_CASE("of the candidates near the lightest either all are played, or none is and prices decide") {
  Profiles profiles;
  const auto played = [&](double bytes) {
    const Query query = asked(Collective::all_reduce, "host", 32, 1, bytes);
    const Choice choice = choose(query, profiles);
    double least = std::numeric_limits<double>::infinity();
    for (const Candidate& c : choice.candidates) least = std::min(least, c.simulated ? weighed(query, c) : least);
    const auto unplayed = [&](const Candidate& c) { return c.refused.empty() && !c.simulated && weighed(query, c.price) <= 1.25 * least; };
    const bool any = least < std::numeric_limits<double>::infinity();
    CHECK((!any || std::ranges::none_of(choice.candidates, unplayed)));
    return any;
  };
  CHECK(played(MiB));
  CHECK_FALSE(played(256 * MiB));  // the lightest has too many events
}

TEST_CASE("what was played is predicted to take its simulated time, and the table says by what is chosen") {
  Profiles profiles;
  Query query = asked(Collective::all_reduce, "host", 8, 1, 512 * KiB);
  const auto said = [&](std::string_view what) { return explain(query, choose(query, profiles)).find(what) != std::string::npos; };
  const Candidate best = *choose(query, profiles).best();
  REQUIRE(best.simulated.has_value());
  CHECK(*best.simulated > 1.01 * best.price.seconds);
  CHECK(predicted(best) == *best.simulated);
  CHECK(said("the weights that decide, by simulation of those near the lightest; "));
  CHECK(said("by its simulated time, not its price"));
  query.costs.processors_per_node = 4;  // none of ranks that share them is played
  query.placement.per_node = 8;
  CHECK(said("the weights that decide, by prices; "));
  CHECK_FALSE(said("simulated"));
  query.costs.measured = {{Collective::all_reduce, 8, 0, {512 * KiB}, {{"ring", {}, {1e-9}}}}};
  CHECK(said("the weights that decide, by times, where there are some; "));
}

TEST_CASE("sizes of a quarter of an octave are played once, and other costs anew") {
  Profiles profiles;
  Query query = asked(Collective::all_reduce, "host", 8, 1, 512 * KiB);
  const auto off = [&] {
    const Choice choice = choose(query, profiles);
    const Candidate* two_shot = choice.cheapest("two_shot");
    return *two_shot->simulated / two_shot->price.seconds;
  };
  const double before = off();
  query.block_bytes = 600 * KiB;
  CHECK(off() == Approx(before).epsilon(1e-12));
  query.costs.link[between].alpha *= 3;
  CHECK(off() != Approx(before).epsilon(1e-3));
}
