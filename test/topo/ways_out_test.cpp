// By which port a GPU goes out where kind, distance and speed of ports pull different ways, and where several are as good.
#include <string>
#include <utility>
#include <vector>

#include "test/catch.h"
#include "test/topo/five_machines.h"
#include "topo/topology.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

Port rdma(const std::string& name, double gbit_per_s, bool up = true) { return {name, 1, gbit_per_s, 0, true, up}; }
Port plain(const std::string& name, double gbit_per_s, bool up = true) { return {name, 1, gbit_per_s, 0, false, up}; }

Pci function(uint8_t bus) {
  Pci pci;
  pci.address = {0, bus, 0, 0};
  pci.link = {32, 16, 16};
  return pci;
}

/// A GPU and what is on its switch, on its NUMA node, and on the other one.
struct Around {
  std::vector<Port> on_switch, on_node, far;
};

Topology machine_of(const Around& around) {
  Topology machine{{{-1, std::nullopt, Numa{}}, {0, function(1), Switch{}}, {1, function(2), Gpu{}}}};
  uint8_t bus = 3;
  const auto add = [&](int parent, const std::vector<Port>& ports) {
    for (const Port& port : ports) machine.parts.push_back({parent, function(bus++), Nic{{port}}});
  };
  add(1, around.on_switch);
  add(0, around.on_node);
  machine.parts.push_back({-1, std::nullopt, Numa{}});
  add(static_cast<int>(machine.parts.size()) - 1, around.far);
  return machine;
}

/// Names, best first, of the first GPU.
std::vector<std::string> ways_of(const Around& around) {
  const Topology machine = machine_of(around);
  const auto ways = ways_out(machine);
  std::vector<std::string> names;
  for (const Way& way : ways.at(0)) names.push_back(machine.port(way.nic, way.port).name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("an interface for management beside a GPU is no way out while an RDMA port is up, however far") {
  CHECK(ways_of({{plain("eno1", 1)}, {plain("eth0", 100)}, {rdma("mlx5_0", 100)}}) == Names{"mlx5_0", "eno1", "eth0"});
}

TEST_CASE("among RDMA ports the nearest is the way out, also where a farther one is faster") {
  CHECK(ways_of({{rdma("mlx5_2", 100)}, {rdma("mlx5_0", 200)}, {rdma("mlx5_1", 400)}}) == Names{"mlx5_2", "mlx5_0", "mlx5_1"});
  CHECK(ways_of({{rdma("mlx5_0", 100), rdma("mlx5_1", 400)}, {}, {}}) == Names{"mlx5_1", "mlx5_0"});
}

TEST_CASE("a near port that is down reaches nobody: the next nearest is the way out, and interfaces where no RDMA port is left") {
  CHECK(ways_of({{rdma("mlx5_0", 400, false)}, {plain("eth0", 100)}, {rdma("mlx5_1", 400)}}) == Names{"mlx5_1", "eth0"});
  CHECK(ways_of({{plain("eno1", 1)}, {plain("eth0", 100)}, {rdma("mlx5_0", 400, false)}}) == Names{"eno1", "eth0"});
  CHECK(ways_of({{plain("eno1", 1, false)}, {}, {}}).empty());
}

TEST_CASE("ports that are equal to two GPUs are dealt the same way whoever asks") {
  Topology machine = machine_of({{rdma("mlx5_0", 400), rdma("mlx5_1", 400)}, {}, {}});
  machine.parts.push_back({1, function(9), Gpu{}});
  const auto ways = ways_out(machine), again = ways_out(Topology(machine));
  REQUIRE(ways.size() == 2);
  CHECK(ways[0][0].nic != ways[1][0].nic);  // both rails are used
  for (size_t gpu = 0; gpu < 2; ++gpu) CHECK(ways[gpu][0].nic == again[gpu][0].nic);
}

TEST_CASE("GPUs take a port of each NIC before any takes a second port, also of NICs that show these as devices") {
  const auto port = [](const char* name, int number, uint64_t guid) { return Port{name, number, 400, guid, true, true}; };
  Topology machine{{{-1, std::nullopt, Numa{}}, {0, function(1), Switch{}}}};
  const auto add = [&](std::vector<Port> ports) {
    machine.parts.push_back({1, function(static_cast<uint8_t>(machine.parts.size())), Nic{std::move(ports)}});
  };
  SECTION("ports of a device") {
    add({port("mlx5_0", 1, 0), port("mlx5_0", 2, 0)});
    add({port("mlx5_1", 1, 0), port("mlx5_1", 2, 0)});
  }
  SECTION("devices") {
    add({port("mlx5_0", 1, 7)}), add({port("mlx5_0", 2, 7)});
    add({port("mlx5_1", 1, 8)}), add({port("mlx5_1", 2, 8)});
  }
  for (int gpu = 0; gpu < 4; ++gpu) machine.parts.push_back({1, function(static_cast<uint8_t>(16 + gpu)), Gpu{}});
  std::string own;
  for (const auto& ways : ways_out(machine)) {
    const Port& taken = machine.port(ways[0].nic, ways[0].port);
    own += taken.name + ":" + std::to_string(taken.number) + " ";
  }
  CHECK(own == "mlx5_0:1 mlx5_1:1 mlx5_0:2 mlx5_1:2 ");
}

TEST_CASE("a GPU that has a choice leaves another the one port that is best for it") {
  // One GPU beside two switches with a port each, the other on the first of these.
  Topology machine{{{-1, std::nullopt, Numa{}}, {0, function(1), Switch{}}, {0, function(2), Switch{}}, {0, function(3), Gpu{}}}};
  machine.parts.push_back({1, function(4), Gpu{}});
  for (const int below : {1, 2}) machine.parts.push_back({below, function(static_cast<uint8_t>(5 + below)), Nic{{rdma("mlx5", 400)}}});
  const auto ways = ways_out(machine);
  REQUIRE(ways.size() == 2);
  CHECK(ways[0][0].nic == 6);
  CHECK(ways[1][0].nic == 5);
}

TEST_CASE("on each of five machines a GPU has a port of its own, the nearest, and those that share ports are spread over them") {
  const std::vector<std::pair<std::string, Names>> own{
      {"DGX", {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7"}},
      {"box", {"mlx5_0", "mlx5_0", "mlx5_0", "mlx5_0", "mlx5_1", "mlx5_1", "mlx5_1", "mlx5_1"}},
      {"flat virtual machine", {"eth0", "eth1", "eth0", "eth1"}},
      {"laptop", {"wlan0"}},
      {"tray", {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"}}};
  REQUIRE(own.size() == test::five_machines.size());
  for (size_t i = 0; i < own.size(); ++i) {
    const Topology machine = test::five_machines.at(i).topology();
    Names found;
    for (const auto& ways : ways_out(machine)) found.push_back(ways.empty() ? "" : machine.port(ways[0].nic, ways[0].port).name);
    INFO(own[i].first);
    CHECK(own[i].first == test::five_machines.at(i).name);
    CHECK(found == own[i].second);
  }
}
