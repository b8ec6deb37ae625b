// Which schedule is chosen, and what the options say about it.
#include "engine/choice.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/plan.h"
#include "test/catch.h"
#include "test/engine/facts_on.h"
#include "test/folder.h"
#include "test/kept_log.h"
#include "test/ranks.h"
#include "test/text.h"
#include "topo/algorithms.h"
#include "topo/constants.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::configured;
using gyre::test::contains;
using gyre::test::error_of;
using gyre::test::on;

namespace {

Circumstances with(std::string algorithm, size_t channels, int ranks = 4) {
  Circumstances c{ranks, channels, std::move(algorithm), {}, {{ranks, 1}, {}}, *topo::default_constants()->machine("host"), {}};
  return c;
}

/// What ranks on these hosts run, which have these processors, and this network between them.
Choice chosen_on(const std::vector<std::string>& hosts, const char* network, uint64_t processors, Collective collective, size_t block_bytes,
                 topo::Profiles& profiles) {
  auto facts = on(hosts);
  for (Facts& each : facts) each.processors = {processors}, each.backends = {"shm", network};
  return *choose(*circumstances(configured({}), facts), {collective, block_bytes, DataType::uint8, ReduceOp::sum, 0}, profiles);
}
bool by_hosts(const Choice& choice) {
  return choice.family == "hierarchical" || choice.family == "leaders" || choice.family == "chained_tree";
}
const std::vector<std::string> two_hosts{"a", "a", "a", "a", "b", "b", "b", "b"},
    one_host(8, "a"), eight_hosts{"a", "b", "c", "d", "e", "f", "g", "h"};
constexpr uint64_t enough = 0xff, too_few = 0x3;  // processors of each host, for its ranks

}  // namespace

TEST_CASE("hosts are a grid when all have equally many ranks") {
  CHECK(placed(on({"a"})).hosts == std::vector{1, 1});
  CHECK(placed(on({"a", "a", "a"})).hosts == std::vector{3, 1});
  CHECK(placed(on({"a", "a", "b", "b", "c", "c"})).hosts == std::vector{2, 3});
  CHECK(placed(on({"a", "b", "c"})).hosts == std::vector{1, 3});
  CHECK(placed(on({"a", "a", "b"})).hosts.empty());
  CHECK(placed(on({"a", "b", "a", "b"})).hosts == std::vector{2, 2});
  CHECK(placed(on({"a", "a", "b", "b", "a", "a"})).hosts.empty());
}

TEST_CASE("ranks have positions by hosts, and on these by NUMA nodes where all are bound to one") {
  using Order = schedule::RankOrder;
  CHECK(placed(on({"a", "a", "b", "b"})).order.empty());
  CHECK(placed(on({"a", "b", "a", "b"})).order == Order{0, 2, 1, 3});
  CHECK(placed(on({"b", "a", "a", "b"})).order == Order{0, 3, 1, 2});
  CHECK(placed(on({"a", "b", "a"})).order == Order{0, 2, 1});
  auto facts = on({"a", "a", "a", "b", "b"});
  facts[0].numa = facts[2].numa = 1, facts[1].numa = 0;
  CHECK(placed(facts).order == Order{1, 0, 2, 3, 4});
  facts[1].numa = -1;
  CHECK(placed(facts).order.empty());
}

TEST_CASE("ranks that are dealt to hosts in turn have what others have, but for sums in the order of ranks, and in a given grid") {
  topo::Profiles profiles;
  const auto dealt = on({"a", "b", "a", "b"});
  const Call call{Collective::reduce, 1000, DataType::float32, ReduceOp::sum, 2};
  const auto chosen = [&](const std::vector<std::string>& settings, std::string algorithm) {
    auto c = *circumstances(configured(settings), dealt);
    c.algorithm = std::move(algorithm);
    return *choose(c, call, profiles);
  };
  const Choice leaders = chosen({}, "leaders");
  CHECK(leaders.instead == "");
  CHECK(leaders.shape.grid == std::vector{2, 2});
  CHECK(leaders.shape.root == 1);
  CHECK(leaders.orders == std::vector<schedule::RankOrder>{{0, 2, 1, 3}});
  CHECK(chosen({"GYRE_NUMERICS=ordered"}, "leaders").instead == "needs a grid {ranks of a node, nodes}");
  CHECK(chosen({"GYRE_NUMERICS=ordered"}, "auto").orders.empty());
  const auto uneven = *circumstances(configured({"GYRE_ALGORITHM=chained_tree"}), on({"a", "a", "b"}));
  CHECK(choose(uneven, call, profiles)->instead == "hosts have different numbers of ranks");
  const Choice given = chosen({"GYRE_GRID=2x2"}, "leaders");
  CHECK(given.orders.empty());
  CHECK(given.shape.root == 2);
}

TEST_CASE("sums in the order of ranks keep the hosts where only ranks of a host change places") {
  auto facts = on({"a", "a", "b", "b"});
  for (const size_t rank : {0U, 2U}) facts[rank].numa = 1, facts[rank + 1].numa = 0;
  const auto c = *circumstances(configured({"GYRE_NUMERICS=ordered"}), facts);
  CHECK(c.placed.order == schedule::RankOrder{1, 0, 3, 2});
  CHECK(query(c, {Collective::all_reduce, 8, DataType::float32, ReduceOp::sum, 0}).placement.per_node == 2);
}

TEST_CASE("GYRE_GRID is extents whose product is the number of ranks") {
  const auto eight = on(std::vector<std::string>(8, "a"));
  const auto grid = circumstances(configured({"GYRE_GRID=4x2"}), eight);
  REQUIRE(grid);
  CHECK(grid->grid == std::vector{4, 2});
  CHECK(circumstances(configured({"GYRE_GRID=2x2x2"}), eight)->grid == std::vector{2, 2, 2});
  CHECK(circumstances(configured({"GYRE_GRID=8"}), eight)->grid == std::vector{8});
  CHECK(circumstances(configured({}), eight)->grid.empty());
  CHECK(error_of(circumstances(configured({"GYRE_GRID=4x3"}), eight)) == "GYRE_GRID=4x3: has 12 places for 8 ranks");
  CHECK(error_of(circumstances(configured({"GYRE_GRID=9"}), eight)) == "GYRE_GRID=9: has 9 places for 8 ranks");
  for (const char* wrong : {"4x", "x2", "4y2", "0x8", "-4x-2", "4 x 2", "4x2x"}) {
    INFO(wrong);
    CHECK(error_of(circumstances(configured({std::string("GYRE_GRID=") + wrong}), eight)) ==
          std::string("GYRE_GRID=") + wrong + ": must be extents such as 4x2, whose product is the number of ranks");
  }
}

TEST_CASE("a given grid is also that of who else goes along the factors of the number of ranks") {
  topo::Profiles profiles;
  const auto grid = [&](const std::vector<std::string>& settings) {
    const auto c = circumstances(configured(settings), on(std::vector<std::string>(6, "a")));
    return choose(*c, {Collective::all_reduce, 1000, DataType::float32, ReduceOp::sum, 0}, profiles)->shape.grid;
  };
  CHECK(grid({"GYRE_ALGORITHM=halving_doubling", "GYRE_GRID=2x3"}) == std::vector{2, 3});
  CHECK(grid({"GYRE_ALGORITHM=halving_doubling"}).empty());
  CHECK(grid({"GYRE_ALGORITHM=ring", "GYRE_GRID=2x3"}).empty());
}

TEST_CASE("times that were measured are of hosts with equally many ranks") {
  const auto known = [](const std::vector<std::string>& hosts) {
    auto c = *circumstances(configured({}), on(hosts));
    c.costs.measured = {{Collective::all_reduce, 3, 1, {8}, {{"ring", {}, {1}}}}};
    return query(c, {Collective::all_reduce, 8, DataType::uint8, ReduceOp::sum, 0}).costs.measured.size();
  };
  CHECK(known({"a", "b", "c"}) == 1);
  CHECK(known({"a", "a", "b"}) == 0);  // priced as if each had a host of its own
}

TEST_CASE("every collective has a schedule, whatever its size, and the one that was named where that has it") {
  topo::Profiles profiles;
  for (const Collective collective : all_collectives()) {
    for (const size_t count : {size_t{1}, size_t{1} << 22}) {
      for (const std::string algorithm : {"auto", "ring", "naive", "one_shot"}) {
        const Call call{collective, count, DataType::float32, ReduceOp::sum, 0};
        const auto choice = choose(with(algorithm, 0), call, profiles);
        INFO(algorithm << " " << name(collective) << " " << error_of(choice));
        REQUIRE(choice);
        CHECK(topo::refusal(*topo::family_named(choice->family), choice->shape).empty());
        if (algorithm != "auto") CHECK((choice->family == algorithm) == choice->instead.empty());
      }
    }
  }
}

TEST_CASE("a schedule is refused where its plan is, whose messages fit no slot, and else priced as cut by it") {
  topo::Profiles profiles;
  int refused = 0;
  for (const size_t slot_bytes : {16U, 32U, 64U, 256U, 4096U}) {
    for (const DataType type : {DataType::int8, DataType::float32, DataType::float64}) {
      Circumstances c = with("auto", 0, 16);
      c.cutting.slot_bytes = slot_bytes;
      const Call call{Collective::reduce_scatter, 5000, type, ReduceOp::sum, 0};
      for (const topo::Candidate& candidate : topo::choose(query(c, call, false), profiles).candidates) {
        const topo::Family& family = *topo::family_named(candidate.family);
        if (!topo::refusal(family, candidate.shape).empty() || topo::lacks_nodes(family, candidate.shape)) continue;
        INFO(candidate.family << " of " << name(type) << ", slots of " << slot_bytes << " bytes: " << candidate.refused);
        const auto proven = prove(candidate.family, candidate.shape, {c.cutting.credits, slot_bytes});
        REQUIRE(proven);
        const auto plan = Plan::make(*proven, call, slot_bytes);
        CHECK(static_cast<bool>(plan) == candidate.refused.empty());
        refused += plan ? 0 : 1;
        if (!plan) continue;
        const schedule::Cut cut = schedule::cut(call.count * size_of(type), 1, plan->schedule().longest_message(), c.cutting);
        CHECK(int64_t{plan->slices()} * plan->rounds() == cut.pieces());
      }
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("what was found not to run is passed over, also where it was named, until nothing is left, with the reasons") {
  topo::Profiles profiles;
  const Call call{Collective::reduce_scatter, 1000, DataType::float32, ReduceOp::sum, 0};
  Excluded excluded{{key(*choose(with("ring", 0), call, profiles)), "it needs too much"}};
  const auto instead = choose(with("ring", 0), call, profiles, excluded);
  REQUIRE(instead);
  CHECK(instead->instead == "it needs too much");
  CHECK(!excluded.contains(key(*instead)));
  auto choice = choose(with("auto", 0), call, profiles);
  for (int i = 0; choice && i < 100; ++i) {
    CHECK(choice->instead.empty());
    CHECK(excluded.emplace(key(*choice), fmt::format("reason {}", i)).second != (choice->family == "ring" && choice->shape.channels == 1));
    choice = choose(with("auto", 0), call, profiles, excluded);
  }
  CHECK(error_of(choice).starts_with("no algorithm has reduce_scatter"));
  CHECK(error_of(choice).find("; halving_doubling: reason ") != std::string::npos);
  CHECK(excluded.size() > 3);
}

TEST_CASE("ranks that are not joined are priced as such, at their places, and what has no relays is an error that says so") {
  topo::Profiles profiles;
  Circumstances c = with("auto", 0, 4);
  c.placed.order = {0, 3, 1, 2};
  c.missing = {{1, 3}};
  const auto overrides = query(c, {Collective::all_reduce, 8, DataType::float32, ReduceOp::sum, 0}).overrides;
  REQUIRE(overrides.size() == 1);
  CHECK(std::tuple(overrides[0].a, overrides[0].b, overrides[0].missing) == std::tuple(2, 1, true));
  CHECK(choose(c, {Collective::all_gather, 1 << 20, DataType::float32, ReduceOp::sum, 0}, profiles));
  CHECK(error_of(choose(c, {Collective::all_to_all, 8, DataType::float32, ReduceOp::sum, 0}, profiles)) ==
        "no algorithm has alltoall for 4 ranks; naive: no way from rank 1 to rank 3 on channel 0 that others' messages leave free; "
        "one_shot: no way from rank 1 to rank 3 on channel 0 that others' messages leave free");
}

TEST_CASE("what ranks at their places have no relays for, they may have in the order of their numbers") {
  topo::Profiles profiles;
  const schedule::RankPairs pairs{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  for (unsigned lacking = 0; lacking < 64; ++lacking) {
    Circumstances c = with("auto", 0, 4);
    for (size_t i = 0; i < pairs.size(); ++i) {
      if ((lacking >> i & 1) != 0) c.missing.push_back(pairs[i]);
    }
    Circumstances placed = c;
    placed.placed.order = {2, 0, 3, 1};
    for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::broadcast}) {
      const Call call{collective, 1 << 20, DataType::float32, ReduceOp::sum, 0};
      INFO(lacking << " " << name(collective));
      if (choose(c, call, profiles)) CHECK(choose(placed, call, profiles));
    }
  }
}

TEST_CASE("why nothing is left is said of every family that has the collective, also of more ranks than are looked at") {
  topo::Profiles profiles;
  Circumstances c = with("auto", 0, 1025);
  c.missing = {{1, 3}};
  CHECK(error_of(choose(c, {Collective::all_to_all, 8, DataType::float32, ReduceOp::sum, 0}, profiles)) ==
        "no algorithm has alltoall for 1025 ranks; naive: a link is missing or slower than others, and which links schedules use is looked "
        "at for 1024 ranks at most, not 1025; one_shot: a link is missing or slower than others, and which links schedules use is looked "
        "at for 1024 ranks at most, not 1025");
}

TEST_CASE("channels are as many as were asked for, and one where none were") {
  topo::Profiles profiles;
  const Call call{Collective::all_reduce, 1000, DataType::float32, ReduceOp::sum, 0};
  CHECK(choose(with("ring", 0), call, profiles)->shape.channels == 1);
  CHECK(choose(with("ring", 1), call, profiles)->shape.channels == 1);
  CHECK(choose(with("ring", 3), call, profiles)->shape.channels == 3);
  for (const size_t channels : {1U, 3U, 16U}) {
    const auto choice = choose(with("auto", channels), call, profiles);
    CHECK(choice->shape.channels == channels / (choice->family == "double_tree" ? 2 : 1));
  }
  CHECK(connected_channels(configured({})) == 2);
  CHECK(connected_channels(configured({"GYRE_CHANNELS=1"})) == 2);
  CHECK(connected_channels(configured({"GYRE_CHANNELS=5"})) == 5);
}

TEST_CASE("a double tree has two channels per channel of its shape") {
  topo::Profiles profiles;
  if (topo::family_named("double_tree") == nullptr) return;
  const Call call{Collective::all_reduce, 1000, DataType::float32, ReduceOp::sum, 0};
  for (const size_t channels : {size_t{0}, size_t{2}, size_t{3}})
    CHECK(choose(with("double_tree", channels), call, profiles)->shape.channels == 1);
  CHECK(choose(with("double_tree", 4), call, profiles)->shape.channels == 2);
  CHECK(choose(with("double_tree", 1), {Collective::all_gather, 1000, DataType::float32, ReduceOp::sum, 0}, profiles));
  CHECK(error_of(choose(with("double_tree", 1), call, profiles)) == "double_tree needs 2 channels, GYRE_CHANNELS is 1");
}

TEST_CASE("on GPUs few hops win up to megabytes, and what goes to another host pays for both ways") {
  topo::Profiles profiles;
  const auto constants = *topo::default_constants();
  const topo::Costs hosts = *constants.machine("host");
  Circumstances c = with("auto", 0, 4);
  c.cutting = {.slot_bytes = 32 << 20, .slices = schedule::slices_under_way(4), .credits = 4};
  const Call call{Collective::all_reduce, 1 << 18, DataType::float32, ReduceOp::sum, 0};
  CHECK(choose(c, call, profiles)->family == "two_shot");
  c.costs = on_gpus(hosts, *constants.machine("gpu"));
  CHECK(choose(c, call, profiles)->family == "one_shot");
  const auto pinned = constants.machine("gpu_pinned")->link[topo::inside];
  const auto& network = hosts.link[topo::between];
  CHECK(c.costs.link[topo::between].alpha == Approx(pinned.alpha + network.alpha));
  CHECK(c.costs.link[topo::between].overhead == Approx(pinned.overhead + network.overhead));
  CHECK(c.costs.link[topo::between].beta == std::max(pinned.beta, network.beta));
  CHECK(c.costs.processors_per_node == 0);
}

TEST_CASE("where ranks share hosts a schedule by hosts is chosen, and where they do not, none") {
  topo::Profiles profiles;
  for (const char* network : {"tcp", "verbs"}) {
    for (const uint64_t processors : {enough, too_few}) {
      const auto chosen = [&](const std::vector<std::string>& hosts, size_t bytes) {
        return chosen_on(hosts, network, processors, Collective::all_reduce, bytes, profiles);
      };
      const Choice medium = chosen(two_hosts, 32 << 10), large = chosen(two_hosts, 4 << 20);
      INFO(fmt::format("{}, processors {:#x}: {}, {}", network, processors, medium.family, large.family));
      CHECK(medium.family == "hierarchical");
      CHECK(medium.shape.grid == std::vector{4, 2});
      if (network == std::string("tcp")) {  // over faster ones a ring crosses the link often enough
        CHECK(by_hosts(large));
        CHECK(large.shape.grid == std::vector{4, 2});
      }
      for (const size_t bytes : {size_t{32} << 10, size_t{4} << 20}) {
        CHECK_FALSE(by_hosts(chosen(one_host, bytes)));
        CHECK_FALSE(by_hosts(chosen(eight_hosts, bytes)));
      }
    }
  }
}

// Large all-gathers do not, since bucket's rings are these hosts' by themselves.
TEST_CASE("where ranks share hosts other collectives go by hosts, too, and where they do not, none") {
  topo::Profiles profiles;
  constexpr size_t small = 4 << 10, medium = 16 << 10, large = 4 << 20;
  for (const std::string network : {"tcp", "verbs"}) {
    for (const uint64_t processors : {enough, too_few}) {
      INFO(network << ", processors " << processors);
      const auto go_by_hosts = [&](const std::vector<std::string>& hosts, Collective collective, size_t bytes) {
        const Choice choice = chosen_on(hosts, network.c_str(), processors, collective, bytes, profiles);
        return by_hosts(choice) && choice.shape.grid == std::vector{4, 2};
      };
      CHECK(go_by_hosts(two_hosts, Collective::all_gather, small));
      CHECK(go_by_hosts(two_hosts, Collective::reduce_scatter, small));
      if (network == "tcp" || processors == enough) {  // to ranks that wait for processors a message by verbs is no dearer than by memory
        CHECK(go_by_hosts(two_hosts, Collective::broadcast, medium));
        CHECK(go_by_hosts(two_hosts, Collective::reduce, medium));
      }
      if (network == "tcp") CHECK(go_by_hosts(two_hosts, Collective::broadcast, large));
      if (network == "tcp" && processors == enough) CHECK(go_by_hosts(two_hosts, Collective::reduce_scatter, large));
      for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter, Collective::broadcast, Collective::reduce}) {
        for (const size_t bytes : {small, medium, large}) {
          CHECK_FALSE(by_hosts(chosen_on(one_host, network.c_str(), processors, collective, bytes, profiles)));
          CHECK_FALSE(by_hosts(chosen_on(eight_hosts, network.c_str(), processors, collective, bytes, profiles)));
        }
      }
    }
  }
}

TEST_CASE("a file of constants from before there was a machine has those compiled in of it, which a line says") {
  const test::Folder folder;
  const std::string file = folder / "constants.json";
  std::string text = *topo::constants_text("");
  for (size_t at = 0; (at = text.find("\"host_verbs", at)) != std::string::npos;) text.replace(at, 11, "\"some_other");
  std::ofstream(file) << text;
  auto facts = on({"a", "b"});
  for (Facts& each : facts) each.processors = {3}, each.backends = {"shm", "verbs", "tcp"};
  for (const char* transport : {"GYRE_TRANSPORT=auto", "GYRE_TRANSPORT=verbs"}) {
    const test::KeptLog log;
    const auto old = circumstances(configured({transport, "GYRE_CONSTANTS=" + file}), facts);
    INFO(error_of(old));
    REQUIRE(old);
    CHECK(old->costs.link[topo::between].alpha == circumstances(configured({transport}), facts)->costs.link[topo::between].alpha);
    CHECK(log.has("GYRE_CONSTANTS=" + file + ": no machine host_verbs"));
  }
}

TEST_CASE("the machine is told by transport and load, and its constants come from GYRE_CONSTANTS") {
  auto two = on({"a", "a"});
  for (Facts& facts : two) facts.processors = {3};
  CHECK(machine(configured({}), two) == "host");
  CHECK(machine(configured({"GYRE_TRANSPORT=ucx"}), two) == "host_ucx");
  CHECK(machine(configured({"GYRE_TRANSPORT=verbs"}), two) == "host_verbs");
  CHECK(machine(configured({"GYRE_TRANSPORT=tcp"}), two) == "host_tcp");
  for (Facts& facts : two) facts.processors = {1};
  CHECK(machine(configured({}), two) == "host_crowded");
  CHECK(machine(configured({"GYRE_TRANSPORT=ucx"}), two) == "host_ucx_crowded");
  CHECK(machine(configured({"GYRE_TRANSPORT=tcp"}), two) == "host_tcp_crowded");
  CHECK(circumstances(configured({}), two)->costs.processors_per_node == 1);
  CHECK(query(*circumstances(configured({}), two), {}).slots);
  CHECK(!query(*circumstances(configured({"GYRE_TRANSPORT=tcp"}), two), {}).slots);
  CHECK(error_of(circumstances(configured({"GYRE_CONSTANTS=/nowhere.json"}), two)) == "/nowhere.json: No such file or directory");
}

TEST_CASE("constants that have no end, or are larger than any, are refused before they are read") {
  const test::Folder folder;
  const auto refusal = [](const std::string& file) {
    return error_of(circumstances(configured({"GYRE_CONSTANTS=" + file}), on({"a", "a"})));
  };
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  std::ofstream(folder / "large") << std::string((1 << 20) + 1, ' ');
  CHECK(refusal(folder / "large") == (folder / "large") + ": 1048577 bytes, must be 1048576 at most");
  CHECK(refusal(folder / "fifo") == (folder / "fifo") + ": no regular file");
  CHECK(refusal("/dev/zero") == "/dev/zero: no regular file");
}
