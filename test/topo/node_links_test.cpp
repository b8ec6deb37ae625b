// What channels see of machines.
#include "topo/node_links.h"

#include "test/catch.h"
#include "test/topo/fake_machine.h"
#include "topo/discover.h"

using namespace gyre;
using namespace gyre::topo;
using test::FakeMachine;

namespace {

NodeLinks links_of(const FakeMachine& machine) {
  const auto topology = discover(machine.root(), {});
  REQUIRE(topology);
  return node_links(*topology);
}

}  // namespace

TEST_CASE("the rails of a DGX are its eight ports beside GPUs, and none for storage") {
  const FakeMachine machine;
  test::make_dgx(machine);
  const NodeLinks links = links_of(machine);
  REQUIRE(links.gpus == 8);
  REQUIRE(links.rails.size() == 8);
  for (size_t rail = 0; rail < 8; ++rail) CHECK(links.rails[rail].near == std::vector<int>{static_cast<int>(rail)});
  CHECK(links.distance[links.at(0, 0)] == Distance::same);
  CHECK(links.distance[links.at(0, 3)] == Distance::host_bridge);
  CHECK(links.distance[links.at(0, 4)] == Distance::system);
  CHECK(!links.nvlink(0, 1));
  CHECK(links.reaches(0, 7));
}

TEST_CASE("ports that are as good are rails, too, also where GPUs have fewer") {
  const FakeMachine machine;
  machine.x86();
  machine.numa(0, "ff");
  machine.gpu("0000:10/0000:10:00.0", 0);
  for (const int i : {0, 1, 2}) {
    const std::string bus = "0000:2" + std::to_string(i);
    machine.rdma(machine.nic(bus + "/" + bus + ":00.0", 0), "mlx5_" + std::to_string(i),
                 i == 2 ? "100 Gb/sec (4X EDR)" : "400 Gb/sec (4X NDR)");
  }
  const NodeLinks links = links_of(machine);
  REQUIRE(links.rails.size() == 2);  // the third is slower
  CHECK(links.rails[0].near == std::vector<int>{0});
  CHECK(links.rails[1].near == std::vector<int>{0});
}

TEST_CASE("a machine without GPUs has no links, and one without ports no rails") {
  const FakeMachine none, alone;
  none.x86(), alone.x86();
  none.numa(0, "ff"), alone.numa(0, "ff");
  alone.gpu("0000:10/0000:10:00.0", 0);
  CHECK(links_of(none).gpus == 0);
  CHECK(links_of(none).rails.empty());
  CHECK(links_of(alone).gpus == 1);
  CHECK(links_of(alone).rails.empty());
}
