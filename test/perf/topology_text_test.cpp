#include "perf/topology_text.h"

#include "perf/topology_channels.h"
#include "perf/topology_svg.h"

#include <map>
#include <regex>

#include "test/catch.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

Pci function(uint8_t bus, int lanes) {
  Pci pci;
  pci.address = {0, bus, 0, 0};
  pci.link = {32, lanes, 16};
  return pci;
}

}  // namespace

TEST_CASE("GPUs and NICs of which only the class is known have their addresses for names") {
  const Topology cloud{{{-1, std::nullopt, Numa{}}, {0, function(1, 16), Gpu{}}, {0, function(2, 16), Nic{}}}};
  CHECK(perf::topology_table(cloud) ==
        R"(                  GPU 0000:01:00.0  NIC 0000:02:00.0
GPU 0000:01:00.0                 X               PHB
NIC 0000:02:00.0               PHB                 X

ways to other machines, best first
GPU 0000:01:00.0  unknown: a NIC without a port
)");
}

TEST_CASE("a machine is shown as a tree and as a table of distances") {
  Topology machine;
  machine.parts.push_back({-1, std::nullopt, Numa{0, "ff", "x86_64", "GenuineIntel", 6, 143}});
  machine.parts.push_back({0, function(1, 16), Switch{}});
  machine.parts.push_back({1, function(2, 16), Gpu{0, 90, {{PciAddress{0, 4, 0, 0}, 0, 4}}, 0, 0}});
  machine.parts.push_back({1, function(3, 8), Nic{{{"mlx5_0", 1, 400, 7, true, true}, {"mlx5_0", 2, 0, 7, true, false}}}});
  machine.parts.push_back({0, function(4, 0), Gpu{1, 0, {{PciAddress{0, 2, 0, 0}, 0, 4, 25.781e9}}, 1, 450e9}});
  machine.parts.push_back({-1, std::nullopt, Numa{1, "", "", "", 0, 0}});
  machine.parts.push_back({5, std::nullopt, Nic{{{"eth0", 1, 0, 0, false, true}}}});
  CHECK(perf::topology_tree(machine) ==
        R"(NUMA node 0, x86_64, GenuineIntel, processors ff
├─ switch 0000:01:00.0, 63 GB/s (32 GT/s x16)
│  ├─ GPU 0 0000:02:00.0, 63 GB/s (32 GT/s x16), sm_90, 4 NVLinks to 0000:04:00.0, out by mlx5_0
│  └─ NIC 0000:03:00.0, 31.5 GB/s (32 GT/s x8 of x16), mlx5_0 400 Gbit/s RDMA, mlx5_0:2 RDMA down
└─ GPU 1 0000:04:00.0, link unknown, 4 NVLinks of 25.8 GB/s to 0000:02:00.0, 1 C2C links of 450 GB/s, out by mlx5_0
NUMA node 1
└─ NIC, eth0
)");
  CHECK(perf::topology_table(machine) ==
        R"(             GPU 0     GPU 1    mlx5_0  mlx5_0:2      eth0
GPU 0            X       NV4       PIX       PIX       SYS
GPU 1          NV4         X       PHB       PHB       SYS
mlx5_0         PIX       PHB         X       LOC       SYS
mlx5_0:2       PIX       PHB       LOC         X       SYS
eth0           SYS       SYS       SYS       SYS         X

ways to other machines, best first
GPU 0     mlx5_0 (PIX)  eth0 (SYS)
GPU 1     mlx5_0 (PHB)  eth0 (SYS)
)");
  machine.parts.resize(2);
  CHECK(perf::topology_table(machine).empty());
}

TEST_CASE("a machine is drawn: each part in its parent's box, and from each GPU a line to its NIC") {
  Topology machine;
  machine.parts.push_back({-1, std::nullopt, Numa{0, "ff", "x86_64", "A & B", 6, 143}});
  machine.parts.push_back({0, function(1, 16), Switch{}});
  machine.parts.push_back({1, function(2, 16), Gpu{0, 90, {{PciAddress{0, 4, 0, 0}, 0, 4}}, 0, 0}});
  machine.parts.push_back({1, function(3, 8), Nic{{{"mlx5_0", 1, 400, 7, true, true}}}});
  machine.parts.push_back({0, function(4, 0), Gpu{1, 0, {{PciAddress{0, 2, 0, 0}, 0, 4}}, 0, 0}});
  const std::string svg = perf::topology_svg(machine, "a <machine>");
  const auto count = [&](std::string_view part) { return test::occurrences(svg, part); };
  CHECK(count("<rect ") == 1 + machine.parts.size() + 2 * 2);  // of two rings
  CHECK(count("<line ") == 2);
  CHECK(count("<polyline ") == 2);
  for (const char* words :
       {"a &lt;machine&gt;", "A &amp; B", "GPU 0", "GPU 1", "mlx5_0, 400 Gbit/s", "4 NVLinks", "PCI switch 0000:01:00.0"})
    CHECK(count(words) == (words[0] == '4' ? 2 : 1));
}

namespace {

/// A GPU and a port below each.
Topology two_switches() {
  Topology machine;
  machine.parts.push_back({-1, std::nullopt, Numa{}});
  for (uint8_t i = 0; i < 2; ++i) {
    machine.parts.push_back({0, function(static_cast<uint8_t>(1 + 4 * i), 16), Switch{}});
    const int at = static_cast<int>(machine.parts.size()) - 1;
    machine.parts.push_back({at, function(static_cast<uint8_t>(2 + 4 * i), 16), Gpu{i, 90, {{std::nullopt, 0, 2}}, 0, 0}});
    machine.parts.push_back(
        {at, function(static_cast<uint8_t>(3 + 4 * i), 16), Nic{{{"mlx5_" + std::to_string(i), 1, 400, 7, true, true}}}});
  }
  return machine;
}

}  // namespace

TEST_CASE("channels are shown with the ports by which they come and go") {
  const Topology machine = two_switches();
  CHECK(perf::topology_channels(machine, 1) == R"(channels: rings, and chains of trees, over the GPUs
  0        GPU 0 → GPU 1; NVLinks of its own
  1        GPU 1 → GPU 0; NVLinks of its own
)");
  CHECK(perf::topology_channels(machine, 3) == R"(channels over 3 such nodes, through the first
  0        mlx5_0 → GPU 0 → GPU 1 → mlx5_1; NVLinks of its own
  1        mlx5_1 → GPU 1 → GPU 0 → mlx5_0; NVLinks of its own
through the second
  0        mlx5_1 → GPU 1 → GPU 0 → mlx5_0; NVLinks of its own
  1        mlx5_0 → GPU 0 → GPU 1 → mlx5_1; NVLinks of its own
through the last
  0        mlx5_0 → GPU 0 → GPU 1 → mlx5_0; NVLinks of its own
  1        mlx5_1 → GPU 1 → GPU 0 → mlx5_1; NVLinks of its own
nodes that trees join: channels 0, 2, …: 1-0 1-2
channels 1, 3, …: 0-1 0-2
)");
  CHECK(perf::topology_channels({{{-1, std::nullopt, Numa{}}}}, 2) == "");
}

TEST_CASE("each channel that differs is drawn with its ring, its tree and its ports, in a row for every node") {
  const Topology machine = two_switches();
  for (const int nodes : {2, 3}) {
    const std::string svg = perf::topology_svg(machine, "some", nodes);
    const auto count = [&](std::string_view part) { return static_cast<int>(test::occurrences(svg, part)); };
    CHECK(count(">channel ") == 2);
    CHECK(count("<rect ") == 1 + 7 + 2 * nodes * 4);  // of each channel's rows two GPUs and two ports
    CHECK(count(">mlx5_0<") == 2 * nodes);
    CHECK(count(" l-6 -4 v8 z") == 2 * nodes * (3 + 1));  // arrows: three in a row, and to the next
    CHECK(count(" H") >= 2 * (2 * nodes - 1));            // bands of trees: each GPU but the root has a parent
    CHECK(count("stroke-width=\"2.5\"") == 2);            // roots
  }
  const std::string alone = perf::topology_svg(machine, "one", 1);
  CHECK(test::contains(alone, ">channel 0<"));
  CHECK_FALSE(test::contains(alone, ">mlx5_0<"));
  CHECK(test::contains(perf::topology_svg(machine, "many", 100), "Channels of a job of 8 nodes, as an example: yours has 100"));
}

TEST_CASE("channels that are alike are drawn once") {
  Topology machine = two_switches();
  for (topo::Part& part : machine.parts) {
    if (auto* gpu = std::get_if<Gpu>(&part.is)) gpu->nvlinks[0].links = 4;
  }
  CHECK(test::contains(perf::topology_svg(machine, "one", 1), ">channels 0, 2<"));
}

TEST_CASE("the ring's way from the last node back to the first is a line of its own") {
  const Topology machine{{{-1, std::nullopt, Numa{}},
                          {0, function(1, 16), Gpu{0, 90, {}, 0, 0}},
                          {0, function(2, 16), Nic{{{"mlx5_0", 1, 400, 7, true, true}}}}}};
  const std::string svg = perf::topology_svg(machine, "some", 8);
  const std::regex way(R"(d="M[0-9.]+ [0-9.]+ v[0-9.]+ H([0-9.]+) V)");
  std::map<std::string, int> beside;
  for (std::sregex_iterator at(svg.begin(), svg.end(), way), end; at != end; ++at) ++beside[(*at)[1]];
  CHECK(beside == std::map<std::string, int>{{"12.0", 1}, {"24.0", 7}});
}

TEST_CASE("a long name of a NIC loses its middle, and is whole under the pointer") {
  Topology machine = two_switches();
  for (topo::Part& part : machine.parts) {
    if (auto* nic = std::get_if<Nic>(&part.is)) nic->ports[0].name = "rocep" + std::string(40, 'x') + "27s0f1";
  }
  const std::string name = std::get<Nic>(machine.parts[3].is).ports[0].name, svg = perf::topology_svg(machine, "some", 2);
  CHECK(test::occurrences(svg, ">rocepxx…x27s0f1") == 2 + 2 * 4);
  CHECK(test::occurrences(svg, name) == 2 + 2 * 4);
  CHECK(test::occurrences(svg, "<title>" + name + "</title>") == 2 + 2 * 4);
}

TEST_CASE("two panels of 8 GPUs and 8 ports stand beside each other") {
  Topology machine{{{-1, std::nullopt, Numa{}}, {0, function(100, 16), Switch{}}}};
  for (uint8_t i = 0; i < 8; ++i) {
    machine.parts.push_back({1, function(static_cast<uint8_t>(1 + 2 * i), 16), Gpu{i, 90, {{std::nullopt, 0, 18}}, 0, 0}});
    machine.parts.push_back(
        {1, function(static_cast<uint8_t>(2 + 2 * i), 16), Nic{{{"rocep27s0f" + std::to_string(i), 1, 400, i, true, true}}}});
  }
  const std::string svg = perf::topology_svg(machine, "some", 2);
  CHECK(test::occurrences(svg, ">channel ") == 8);
  CHECK(test::occurrences(svg, "<g transform=\"translate(12.0 ") == 4);
}
