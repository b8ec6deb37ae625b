#include "topo/select.h"

#include <cstdint>
#include <ctime>

#include "test/catch.h"
#include "topo/algorithms.h"
#include "topo/constants.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

Query on(std::string_view machine, int ranks, int per_node, double bytes) {
  Query query;
  query.ranks = ranks;
  query.placement = {per_node};
  query.block_bytes = bytes;
  query.channels = 2;
  query.costs = *default_constants()->machine(machine);
  return query;
}
const Candidate* find(const Choice& choice, std::string_view family) {
  for (const Candidate& c : choice.candidates) {
    if (c.family == family) return &c;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("every collective has a candidate for every number of ranks and every size", "[long]") {
  Profiles profiles;
  for (const Collective collective : all_collectives()) {
    for (int ranks = 1; ranks <= 64; ranks += ranks < 9 ? 1 : 11) {
      for (const int per_node : {0, 1, 4}) {
        for (const double bytes : {0.0, 1.0, 1e6, 1e12}) {
          Query query = on("host", ranks, per_node, bytes);
          query.collective = collective;
          INFO(name(collective) << ", " << ranks << " ranks, " << per_node << " per node, " << bytes << " bytes");
          const Choice choice = choose(query, profiles);
          REQUIRE(choice.best() != nullptr);
          CHECK(refusal(*family_named(choice.best()->family), choice.best()->shape).empty());
        }
      }
    }
  }
}

TEST_CASE("the cheapest candidate that can run is chosen, the same every time; of what has a root, the cheapest and least work for one",
          "[long]") {
  for (const Collective collective : all_collectives()) {
    for (const int ranks : {1, 2, 3, 8, 24, 64}) {
      for (const double bytes : {0.0, 8.0, 65536.0, 67108864.0}) {
        Profiles first, second;
        Query query = on("host", ranks, ranks % 4 == 0 ? 4 : 0, bytes);
        query.collective = collective;
        query.root = ranks - 1;
        const Choice choice = choose(query, first);
        INFO(name(collective) << ", " << ranks << " ranks, " << bytes << " bytes");
        REQUIRE(choice.best() != nullptr);
        for (const Candidate& c : choice.candidates) {
          CHECK((!c.refused.empty() || weighed(query, c) * (1 + 1e-9) >= weighed(query, *choice.best())));  // but for rounding
          CHECK((c.simulated || weighed(query, c) == c.price.seconds + (rooted(collective) ? c.price.busiest : 0)));
        }
        const Choice again = choose(query, second);
        REQUIRE(again.candidates.size() == choice.candidates.size());
        for (size_t i = 0; i < again.candidates.size(); ++i) {
          CHECK(again.candidates[i].family == choice.candidates[i].family);
          CHECK(again.candidates[i].price.seconds == choice.candidates[i].price.seconds);
        }
        CHECK(explain(query, choice) == explain(query, again));
      }
    }
  }
}

TEST_CASE("of equals the one of the fewest channels is chosen") {
  for (const double bytes : {1e6, 1.5e6, 2097152.0, 3e6, 67108864.0}) {
    Profiles profiles;
    const Choice choice = choose(on("host_tcp", 2, 0, bytes), profiles);  // halves go to and fro, whatever the family
    CHECK(choice.best()->family == "ring");
    CHECK(weighed(on("host_tcp", 2, 0, bytes), *choice.best()) ==
          Approx(weighed(on("host_tcp", 2, 0, bytes), *find(choice, "double_tree"))));
  }
}

// By prices like these naive costs what the best does, whatever the constants say today.
Query crowded_over_tcp(double block_bytes) {
  Query query = on("host_tcp_crowded", 8, 0, block_bytes);
  schedule::LinkClass& link = query.costs.link[inside];
  link.alpha = 0, link.beta = 0.193e-9, link.overhead = 3.6e-6;
  query.costs.rank = {0.452e-9, 0.393e-9, 0.585e-6};
  query.costs.processors_per_node = 2;
  return query;
}

TEST_CASE("a broadcast whose root has to send all of it to everybody is not chosen where others cost the same") {
  Profiles profiles;
  Query query = crowded_over_tcp(64 << 20);
  query.collective = Collective::broadcast;
  const Choice choice = choose(query, profiles);
  const Candidate* naive = find(choice, "naive");
  CHECK(naive->price.seconds == Approx(choice.best()->price.seconds).epsilon(0.02));
  CHECK(naive->price.busiest > 2 * choice.best()->price.busiest);
}

TEST_CASE("where ranks share processors, who does most of the work costs, and of equals the least busy or the fewest hops win") {
  Profiles profiles;
  Query query = crowded_over_tcp(8 << 20);
  query.slots = false;
  query.collective = Collective::all_gather;
  Choice choice = choose(query, profiles);
  CHECK(find(choice, "naive")->price.seconds == Approx(choice.best()->price.seconds).epsilon(0.02));
  CHECK(find(choice, "naive")->price.apart > 2 * choice.best()->price.apart);
  CHECK(choice.best()->family == "one_shot");
  CHECK(choice.best()->price.hops == 1);
  query.collective = Collective::all_reduce;
  choice = choose(query, profiles);
  CHECK(choice.best()->family == "two_shot");
  CHECK(choice.best()->price.hops == 2);
  query.collective = Collective::broadcast;
  query.ranks = 4;
  query.block_bytes = 8;
  choice = choose(query, profiles);
  CHECK(choice.best()->family == "tree");
  CHECK(find(choice, "naive")->price.seconds < choice.best()->price.seconds);
  CHECK(find(choice, "naive")->price.busiest > 1.4 * choice.best()->price.busiest);
}

TEST_CASE("where ranks share processors and slots fall out of caches, the price alone decides") {
  Profiles profiles;
  Query query = on("host_tcp_crowded", 8, 0, 8 << 20);
  query.costs.processors_per_node = 2;
  query.collective = Collective::all_gather;
  const Choice choice = choose(query, profiles);
  CHECK(choice.best()->price.hops > 1);
  for (const Candidate& c : choice.candidates) CHECK((!c.refused.empty() || weighed(query, c.price) == c.price.seconds));
}

TEST_CASE("processors that no ranks share count as many, and what nothing can run is refused where ranks share them, too") {
  Profiles profiles;
  Query query = on("host_tcp_crowded", 8, 0, 8 << 20);
  query.slots = false;
  const Choice own = choose(query, profiles);
  CHECK(own.best()->price.seconds == own.best()->price.apart);
  for (const int processors : {8, 64}) {
    query.costs.processors_per_node = processors;
    const Price price = choose(query, profiles).best()->price;
    CHECK(weighed(query, price) == price.seconds);
  }
  query.costs.processors_per_node = 1;
  const Price price = choose(query, profiles).best()->price;
  CHECK(weighed(query, price) == price.shared);
  query.cutting.slot_bytes = 0;
  CHECK(choose(query, profiles).best() == nullptr);
}

TEST_CASE("a rank's first messages on several channels leave one after the other") {
  Profiles profiles;
  Query query = on("host_tcp", 2, 0, 8);
  query.collective = Collective::broadcast;
  const Choice choice = choose(query, profiles);
  CHECK(find(choice, "double_tree")->price.latency == Approx(find(choice, "tree")->price.latency + query.costs.link[inside].overhead));
}

TEST_CASE("what a machine does not allow is refused with the reason") {
  Profiles profiles;
  Query query = on("host", 8, 0, 1 << 20);
  query.channels = 1;
  Choice choice = choose(query, profiles);
  CHECK(find(choice, "double_tree")->refused == "needs 2 channels, and 1 is allowed");
  CHECK(find(choice, "hierarchical")->refused == "all ranks are on one node");
  CHECK(find(choice, "pat")->refused.find("only") == 0);

  query.placement.per_node = 3;  // nodes of 3, 3 and 2
  CHECK(find(choose(query, profiles), "leaders")->refused == "needs nodes of the same number of ranks, more than one");

  query.element_bytes = 8;
  query.cutting.slot_bytes = 32;
  CHECK(find(choose(query, profiles), "halving_doubling")->refused.empty());
  query.cutting.slot_bytes = 31;
  CHECK(find(choose(query, profiles), "halving_doubling")->refused == "its messages of 4 chunks don't fit a slot of 31 bytes");
}

TEST_CASE(
    "between thousands of nodes few hops win small sizes of every collective, whose messages have an element of thousands of chunks") {
  Profiles profiles;
  Query query = on("gpu_cluster", 4096, 1, 4);
  query.element_bytes = 4;
  const double all_reduce = choose(query, profiles).best()->price.seconds;
  for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather}) {
    query.collective = collective;
    const Choice choice = choose(query, profiles);
    CHECK(choice.best()->price.hops == 12);
    CHECK(choice.best()->price.seconds < all_reduce);
    CHECK(find(choice, "pat")->refused.empty());
  }
}

TEST_CASE("where a link is missing, what goes by relays costs more, and what has no relays is refused") {
  Profiles profiles;
  Query query = on("host_tcp", 8, 0, 1 << 20);
  const auto price = [&](const char* family) { return find(choose(query, profiles), family)->price.seconds; };
  const double ring = price("ring"), tree = price("tree");
  query.overrides = {{6, 7, 1, true}};  // neighbours on the ring, on no tree
  CHECK(price("ring") > 1.1 * ring);
  CHECK(price("tree") == tree);
  CHECK(find(choose(query, profiles), "one_shot")->refused == "no way from rank 6 to rank 7 on channel 0 that others' messages leave free");
  query.overrides[0].slower = 3;  // says nothing of a link that is none
  CHECK(price("ring") > 1.1 * ring);
  query.overrides.push_back({0, 1, 2, false});
  CHECK(price("tree") > tree);
  query.ranks = 1025;
  CHECK(find(choose(query, profiles), "ring")->refused ==
        "a link is missing or slower than others, and which links schedules use is looked at for 1024 ranks at most, not 1025");
}

TEST_CASE("a slower link makes those that use it dearer") {
  Profiles profiles;
  Query query = on("host", 4, 0, 1 << 20);
  query.costs = {};
  query.costs.link[inside].beta = 1e-9;
  const double before = choose(query, profiles).cheapest("ring")->price.seconds;
  query.overrides = {{1, 2, 4, false}};
  CHECK(choose(query, profiles).cheapest("ring")->price.seconds > 2 * before);
}

TEST_CASE("few hops win small sizes, the least traffic large ones") {
  Profiles profiles;
  CHECK(choose(on("host_ucx", 2, 0, 8), profiles).best()->family == "one_shot");
  const auto small = choose(on("gpu_cluster", 4096, 8, 8), profiles);
  CHECK(small.cheapest("ring")->price.seconds > 20 * small.best()->price.seconds);
  const auto large = choose(on("gpu_cluster", 64, 8, double{1 << 30}), profiles);
  CHECK(large.cheapest("tree")->price.seconds > 1.5 * large.best()->price.seconds);
}

TEST_CASE("one_shot has the price of packets where ranks can leave some, and is chosen by it") {
  Profiles profiles;
  Query query = on("gpu", 8, 0, 4096);
  const double by_steps = find(choose(query, profiles), "one_shot")->price.seconds;
  query.packets = true;
  const Choice choice = choose(query, profiles);
  REQUIRE(choice.best() != nullptr);
  CHECK(choice.best()->family == "one_shot");
  CHECK(choice.best()->by_packets);
  CHECK(choice.best()->price.seconds == Approx(query.costs.packets->latency + 8 * 4096 * query.costs.packets->part));
  CHECK(predicted(*choice.best()) == choice.best()->price.seconds);
  CHECK(explain(query, choice).find("packets; but in CUDA graphs\n") != std::string::npos);
  for (const Candidate& c : choice.candidates)
    CHECK(c.by_packets == (c.family == "one_shot" && c.shape.channels == 1 && c.refused.empty()));
  query.ordered = true;
  CHECK_FALSE(find(choose(query, profiles), "one_shot")->by_packets);
  query.ordered = false;
  query.costs.packets.reset();
  CHECK(find(choose(query, profiles), "one_shot")->price.seconds == by_steps);
}

TEST_CASE("two_shot has the price of kernels on all ranks' buffers where these are reached, and large sizes are chosen by it") {
  Profiles profiles;
  for (const double bytes : {double{1 << 20}, double{1 << 30}}) {
    Query query = on("gpu", 4, 0, bytes);
    const double by_steps = find(choose(query, profiles), "two_shot")->price.seconds;
    query.mapped = true;
    const Choice choice = choose(query, profiles);
    REQUIRE(choice.best() != nullptr);
    CHECK(choice.best()->family == "two_shot");
    CHECK(choice.best()->mapped);
    const auto& link = query.costs.link[inside];
    CHECK(choice.best()->price.seconds == Approx(2 * (link.alpha + link.overhead) + 1.5 * bytes * link.beta));
    CHECK(predicted(*choice.best()) == choice.best()->price.seconds);
    CHECK(choice.best()->price.seconds < by_steps);
    CHECK(explain(query, choice).find("mapped; but in CUDA graphs\n") != std::string::npos);
    for (const Candidate& c : choice.candidates) CHECK(c.mapped == (c.family == "two_shot" && c.shape.channels == 1 && c.refused.empty()));
    query.ordered = true;
    CHECK_FALSE(find(choose(query, profiles), "two_shot")->mapped);
  }
}

TEST_CASE("double binary trees have the published lead over the flat ring in latency") {
  // 24,576 ranks on 4,096 nodes of 6: measured, up to 180 times; a model with today's constants gives 150 to 400.
  Profiles profiles;
  const Choice choice = choose(on("gpu_cluster", 24576, 6, 8), profiles);
  const double lead = choice.cheapest("ring")->price.seconds / choice.cheapest("double_tree")->price.seconds;
  INFO("lead " << lead);
  CHECK(lead >= 150);
  CHECK(lead <= 400);
}

TEST_CASE("the rule of thumb is the published one") {
  Profiles profiles;
  const Query small = on("gpu_cluster", 64, 8, 8);
  CHECK(rule_of_thumb(small, choose(small, profiles))->family == "double_tree");
  Query large = on("gpu_cluster", 64, 8, double{1 << 30});
  large.cutting.slot_bytes = 4 << 20;  // smaller ones cost more messages than bytes
  CHECK(rule_of_thumb(large, choose(large, profiles))->family == "hierarchical");
  const Query on_one_node = on("gpu_cluster", 4, 0, double{1 << 30});
  const Choice choice = choose(on_one_node, profiles);
  CHECK(rule_of_thumb(on_one_node, choice) == choice.best());
}

TEST_CASE("a choice for 64 ranks takes under a millisecond, once the collective is known") {
  Profiles profiles;
  const Query query = on("host", 64, 8, 4096);
  choose(query, profiles);
  const std::clock_t begin = std::clock();
  for (int i = 0; i < 10; ++i) choose(query, profiles);
  CHECK(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < 0.01 * 20);  // twenty times that under sanitizers
}
