// What things cost between hosts, and so what is chosen there: by the network that joins them, its ports and what was measured over it.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/choice.h"
#include "test/catch.h"
#include "test/engine/facts_on.h"
#include "test/folder.h"
#include "test/ranks.h"
#include "test/text.h"
#include "topo/constants.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::configured;
using gyre::test::contains;
using gyre::test::on;

TEST_CASE("what goes between hosts has the price of verbs where that joins them, and what goes inside a host its own") {
  const auto constants = *topo::default_constants();
  auto facts = on({"a", "a", "b", "b"});
  for (Facts& each : facts) each.processors = {3}, each.backends = {"shm", "verbs", "tcp"};
  const auto joined = [&] { return circumstances(configured({}), facts)->costs; };
  const auto same = [](const schedule::LinkClass& a, const schedule::LinkClass& b) {
    return a.alpha == b.alpha && a.beta == b.beta && a.overhead == b.overhead;
  };
  const topo::Costs host = *constants.machine("host"), verbs = *constants.machine("host_verbs");
  CHECK(same(joined().link[topo::between], verbs.link[topo::between]));
  CHECK(same(joined().link[topo::inside], host.link[topo::inside]));
  CHECK(joined().direct);
  CHECK_FALSE(same(verbs.link[topo::between], host.link[topo::between]));
  for (Facts& each : facts) each.processors = {1};
  CHECK(same(joined().link[topo::between], constants.machine("host_verbs_crowded")->link[topo::between]));
  auto other = nlohmann::json::parse(*topo::constants_text(""));
  other["machines"]["host_verbs_crowded"]["network"] = "nvlink_like";  // others than inside a host
  const test::Folder folder;
  std::ofstream(folder / "constants.json") << other;
  CHECK(circumstances(configured({"GYRE_CONSTANTS=" + (folder / "constants.json")}), facts)->costs.link[topo::between].name ==
        "nvlink_like");
  facts[3].backends = {"shm", "tcp"};
  CHECK(same(joined().link[topo::between], constants.machine("host_crowded")->link[topo::between]));
}

TEST_CASE("times between hosts are those of the network that joins them, and times inside a host its own") {
  auto constants = nlohmann::json::parse(*topo::constants_text(""));
  const auto took = [](int per_node, double us) {
    return nlohmann::json{{"collective", "all_reduce"},
                          {"ranks", 4},
                          {"per_node", per_node},
                          {"bytes", {8}},
                          {"times", {{{"algorithm", "ring"}, {"grid", nlohmann::json::array()}, {"us", {us}}}}}};
  };
  constants["machines"]["host"]["measured"] = {took(0, 1), took(2, 90)};
  constants["machines"]["host_verbs"]["measured"] = {took(0, 4), took(1, 10)};
  const test::Folder folder;
  std::ofstream(folder / "constants.json") << constants;
  auto facts = on({"a", "a", "b", "b"});
  for (Facts& each : facts) each.processors = {3}, each.backends = {"shm", "verbs", "tcp"};
  const auto times = [&](const char* transport) {
    const auto c = *circumstances(configured({"GYRE_CONSTANTS=" + (folder / "constants.json"), transport}), facts);
    std::string words;
    for (const topo::Measured& m : c.costs.measured) words += fmt::format("{}: {:.0f} us; ", m.per_node, m.times[0].seconds[0] * 1e6);
    return words;
  };
  CHECK(times("GYRE_TRANSPORT=auto") == "0: 1 us; 1: 10 us; ");
  CHECK(times("GYRE_TRANSPORT=verbs") == "0: 4 us; 1: 10 us; ");
  facts[3].backends = {"shm", "tcp"};
  CHECK(times("GYRE_TRANSPORT=auto") == "0: 1 us; 2: 90 us; ");
}

TEST_CASE(
    "where nobody has measured verbs its price between hosts is that of the ports that ranks go by, of the host where it is highest") {
  auto facts = on({"a", "a", "b", "b"});
  for (Facts& each : facts) each.processors = {3}, each.backends = {"shm", "verbs", "tcp"};
  const auto with_ports = [&](Rank rank, int count, int mbit_per_s) {
    auto& ports = facts[static_cast<size_t>(rank)].ports;
    ports.clear();
    for (int i = 0; i < count; ++i) ports.push_back({fmt::format("mlx5_{}:1", i), 1, mbit_per_s});
  };
  const auto costs = [&](const std::vector<std::string>& settings, const std::vector<std::string>& near = {}) {
    return circumstances(configured(settings), facts, *topo::read_constants(""), near)->costs;
  };
  const auto beta = [&](const std::vector<std::string>& near = {}) { return costs({}, near).link[topo::between].beta; };
  const double typical = topo::default_constants()->machine("host_verbs")->link[topo::inside].beta;
  CHECK(beta() == typical);  // no rank knows of a port
  for (Rank rank = 0; rank < 4; ++rank) with_ports(rank, 1, 200'000);
  CHECK(beta() == typical);
  CHECK(typical == Approx(8 / 200e9).epsilon(0.1));  // which is such a port
  for (Rank rank = 0; rank < 4; ++rank) with_ports(rank, 8, 400'000);
  CHECK(beta() == Approx(typical / 16));
  CHECK(costs({"GYRE_TRANSPORT=verbs"}).link[topo::between].beta == Approx(typical / 16));
  CHECK(costs({"GYRE_TRANSPORT=tcp"}).link[topo::between].beta == costs({"GYRE_TRANSPORT=ucx"}).link[topo::between].beta);
  CHECK(beta({"mlx5_0:1", "mlx5_3:1"}) == Approx(typical / 4));  // those near GPUs alone
  CHECK(costs({}).nics_per_node == 1);
  CHECK(costs({}).link[topo::between].name == "host_verbs, typical figures, for the 3200 Gbit/s that a rank's 8 ports have together");
  for (Rank rank = 2; rank < 4; ++rank) with_ports(rank, 2, 100'000);
  CHECK(beta() == Approx(typical));
  with_ports(3, 1, 0);  // nobody knows how fast
  CHECK(beta() == typical);
}

TEST_CASE("ranks that go by a port each have as many NICs") {
  auto facts = on({"a", "a", "b", "b"});
  for (Facts& each : facts) each.processors = {3}, each.backends = {"shm", "verbs", "tcp"};
  for (size_t rank = 0; rank < 4; ++rank) facts[rank].ports = {{fmt::format("mlx5_{}:1", rank % 2), 1, 400'000}};
  const topo::Costs costs = circumstances(configured({}), facts)->costs;
  CHECK(costs.nics_per_node == 2);
  CHECK(contains(costs.link[topo::between].name, "400 Gbit/s that a rank's 1 port has together, 2 times on a host"));
  const topo::Costs gpus = on_gpus(costs, *topo::default_constants()->machine("gpu"));
  CHECK(gpus.nics_per_node == 2 * 18);  // 400 Gbit/s each, of which a rank's GPU fills 0.055
  CHECK(contains(gpus.link[topo::between].name, "gpu_pinned and host_verbs"));
}

TEST_CASE("eight fast ports change what is chosen of many ranks, and what was measured stays as it is") {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < 64; ++rank) hosts.push_back(fmt::format("host{}", rank / 8));
  auto facts = on(hosts);
  for (Facts& each : facts) each.processors = {0xff}, each.backends = {"shm", "verbs"};
  const test::Folder folder;
  const std::string file = folder / "constants.json";
  std::string text = *topo::constants_text("");
  const size_t at = text.find("\"beta_ns_per_byte\"", text.find("\"host_verbs\""));
  text.replace(text.find(':', at), text.find(',', at) - text.find(':', at), ": 0.04");
  std::ofstream(file) << text;
  topo::Profiles profiles;
  const auto chosen = [&](int ports, const std::vector<std::string>& settings = {}) {
    for (Facts& each : facts) {
      each.ports.clear();
      for (int i = 0; i < ports; ++i) each.ports.push_back({fmt::format("mlx5_{}:1", i), 1, ports == 1 ? 200'000 : 400'000});
    }
    const auto c = *circumstances(configured(settings), facts);
    return key(*choose(c, {Collective::all_reduce, 32 << 20, DataType::uint8, ReduceOp::sum, 0}, profiles));
  };
  CHECK(chosen(1) != chosen(8));
  const std::string measured = "GYRE_CONSTANTS=" + file;
  CHECK(chosen(1, {measured}) == chosen(8, {measured}));
}
