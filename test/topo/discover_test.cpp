// What is found on machines of five kinds.
#include "topo/discover.h"

#include "test/catch.h"
#include "test/kept_log.h"
#include "test/topo/five_machines.h"

using namespace gyre;
using namespace gyre::topo;
using test::FakeMachine;

namespace {

Topology found(const FakeMachine& machine, std::span<const DriverGpu> driver = {}) {
  auto topology = discover(machine.root(), driver);
  REQUIRE(topology);
  return *std::move(topology);
}
const Port& port_of(const Topology& topology, const Way& way) { return topology.port(way.nic, way.port); }
Distance between(const Topology& topology, int a, int b) {
  CHECK(path(topology, b, a).distance == path(topology, a, b).distance);
  return path(topology, a, b).distance;
}

}  // namespace

TEST_CASE("a DGX: each GPU goes out by the NIC on its own switch") {
  const FakeMachine machine;
  test::make_dgx(machine);
  const Topology dgx = found(machine);
  const auto gpus = dgx.all<Gpu>();
  REQUIRE(gpus.size() == 8);
  REQUIRE(dgx.all<Nic>().size() == 11);
  REQUIRE(dgx.all<Switch>().size() == 8);
  REQUIRE(dgx.all<Numa>().size() == 2);
  CHECK(std::get<Numa>(dgx.parts[0].is).vendor == "GenuineIntel");
  CHECK(std::get<Numa>(dgx.parts[0].is).family == 6);
  CHECK(std::get<Numa>(dgx.parts[0].is).model == 143);
  CHECK(std::get<Numa>(dgx.parts[0].is).cpus == "00000000,ffffffff");
  const auto ways = ways_out(dgx);
  for (size_t gpu = 0; gpu < 8; ++gpu) {
    CHECK(dgx.gpu(gpus[gpu]).index == static_cast<int>(gpu));
    REQUIRE(ways[gpu].size() == 11);
    const Port& first = port_of(dgx, ways[gpu][0]);
    CHECK(first.name == "mlx5_" + std::to_string(gpu));
    CHECK(first.rdma);
    CHECK(first.gbit_per_s == 400);
    CHECK(first.guid >> 16 == 0x9c63c0030012);
    CHECK(ways[gpu][0].path.distance == Distance::one_switch);
    CHECK(ways[gpu][0].path.bytes_per_s == Approx(63.015e9).epsilon(1e-4));
    CHECK(ways[gpu][1].path.distance == Distance::host_bridge);
    CHECK(port_of(dgx, ways[gpu].back()).name == "eno1");
  }
  CHECK(between(dgx, gpus[0], gpus[0]) == Distance::same);
  CHECK(between(dgx, gpus[0], gpus[3]) == Distance::host_bridge);
  CHECK(between(dgx, gpus[0], gpus[4]) == Distance::system);
  CHECK(path(dgx, gpus[0], gpus[4]).links == 4);
  CHECK(nvlinks(dgx, gpus[0], gpus[1]) == 0);
}

TEST_CASE("a box of two sockets: switches behind a switch, and one NIC for four GPUs") {
  const FakeMachine machine;
  test::make_box(machine);
  const Topology box = found(machine);
  const auto gpus = box.all<Gpu>();
  REQUIRE(gpus.size() == 8);
  REQUIRE(box.all<Switch>().size() == 6);
  CHECK(between(box, gpus[0], gpus[1]) == Distance::one_switch);
  CHECK(between(box, gpus[0], gpus[2]) == Distance::switches);
  CHECK(between(box, gpus[0], gpus[4]) == Distance::system);
  const auto ways = ways_out(box);
  for (size_t gpu = 0; gpu < 8; ++gpu) {
    CHECK(port_of(box, ways[gpu][0]).name == "mlx5_" + std::to_string(gpu / 4));
    CHECK(ways[gpu][0].path.distance == Distance::switches);
    CHECK(ways[gpu][1].path.distance == Distance::system);
  }
}

TEST_CASE("a flat virtual machine: what is equally near is dealt in turn, and nothing is known of links") {
  const FakeMachine machine;
  test::make_flat_vm(machine);
  const Topology vm = found(machine);
  REQUIRE(vm.all<Gpu>().size() == 4);
  REQUIRE(vm.all<Nic>().size() == 2);
  const auto ways = ways_out(vm);
  for (size_t gpu = 0; gpu < 4; ++gpu) {
    REQUIRE(ways[gpu].size() == 2);
    CHECK(port_of(vm, ways[gpu][0]).name == "eth" + std::to_string(gpu % 2));
    CHECK(port_of(vm, ways[gpu][1]).name == "eth" + std::to_string((gpu + 1) % 2));
    CHECK(port_of(vm, ways[gpu][0]).gbit_per_s == 0);
    CHECK(ways[gpu][0].path.distance == Distance::host_bridge);
    CHECK(ways[gpu][0].path.bytes_per_s == 0);
  }
}

TEST_CASE("a laptop: one GPU of NVIDIA's, on a link that lost lanes; what is down is no way out") {
  const FakeMachine machine;
  test::make_laptop(machine);
  const Topology laptop = found(machine);
  REQUIRE(laptop.all<Numa>().size() == 1);
  const auto gpus = laptop.all<Gpu>();
  REQUIRE(gpus.size() == 1);
  CHECK(laptop.part(gpus[0]).pci->link.lanes == 4);
  CHECK(laptop.part(gpus[0]).pci->link.max_lanes == 8);
  CHECK(laptop.part(gpus[0]).pci->link.gt_per_s == 16);
  CHECK(laptop.part(laptop.part(gpus[0]).parent).parent == -1);
  const auto ways = ways_out(laptop);
  REQUIRE(ways[0].size() == 1);
  CHECK(port_of(laptop, ways[0][0]).name == "wlan0");
}

TEST_CASE("GPUs that the driver knows and the system does not show are told of, once") {
  const FakeMachine machine;
  machine.x86();
  machine.gpu("0000:10/0000:10:00.0", 0);
  const DriverGpu shown{*parse_pci_address("0000:10:00.0"), {}}, hidden{*parse_pci_address("0000:20:00.0"), {}},
      other{*parse_pci_address("0000:30:00.0"), {}};
  const test::KeptLog log;
  CHECK(found(machine, std::vector{shown}).all<Gpu>().size() == 1);
  CHECK(log.lines().empty());
  CHECK(found(machine, std::vector{shown, hidden, other}).all<Gpu>().size() == 1);
  CHECK(log.count("2 of 3: 0000:20:00.0, 0000:30:00.0") == 1);
}

TEST_CASE("an interface is a way out if it is up, or its driver does not say") {
  const FakeMachine machine;
  machine.x86();
  machine.gpu("0000:00/0000:00:02.0", -1);
  int device = 3;
  for (const std::string state : {"up", "unknown", "down", "lowerlayerdown", "dormant", "notpresent", "testing"}) {
    const std::string nic = machine.pci("0000:00/0000:00:0" + std::to_string(device++) + ".0", {"0x020000", "0x8086", -1, "", 0, 0});
    machine.interface(nic, state, "1000", state);
  }
  const Topology topology = found(machine);
  const auto ways = ways_out(topology);
  REQUIRE(ways[0].size() == 2);
  CHECK(port_of(topology, ways[0][0]).name == "up");
  CHECK(port_of(topology, ways[0][1]).name == "unknown");
}

TEST_CASE("a tray like a GB200's: nodes of memory alone are left out, GPUs are joined by switches") {
  const FakeMachine machine;
  const Topology tray = found(machine, test::make_tray(machine));
  REQUIRE(tray.all<Numa>().size() == 2);
  CHECK(std::get<Numa>(tray.parts[0].is).arch == "arm64");
  const auto gpus = tray.all<Gpu>();
  REQUIRE(gpus.size() == 4);
  CHECK(tray.gpu(gpus[0]).index == 3);
  CHECK(tray.gpu(gpus[0]).compute_capability == 100);
  CHECK(nvlinks(tray, gpus[0], gpus[1]) == 18);
  CHECK(nvlinks(tray, gpus[0], gpus[3]) == 16);
  CHECK(between(tray, gpus[0], gpus[1]) == Distance::host_bridge);
  const auto ways = ways_out(tray);
  // Two NICs are equally near to two GPUs: each takes one.
  CHECK(port_of(tray, ways[0][0]).name == "mlx5_0");
  CHECK(port_of(tray, ways[1][0]).name == "mlx5_1");
  CHECK(port_of(tray, ways[2][0]).name == "mlx5_2");
  CHECK(port_of(tray, ways[3][0]).name == "mlx5_3");
}

TEST_CASE("an RDMA device made in software is where its interface is, and one without any is on no PCI") {
  const FakeMachine machine;
  machine.interface(machine.nic("0000:00/0000:00:05.0", 0), "eth0", "25000");
  for (const std::string name : {"rxe0", "rxe1"}) {
    const std::string device = "sys/devices/virtual/infiniband/" + name;
    machine.put(device + "/ports/1/rate", "2.5 Gb/sec (1X SDR)");
    machine.put(device + "/ports/1/state", "4: ACTIVE");
    if (name == "rxe0") machine.put(device + "/ports/1/gid_attrs/ndevs/0", "eth0");
    machine.link("sys/class/infiniband/" + name, device);
  }
  const Topology topology = found(machine);
  const auto nics = topology.all<Nic>();
  REQUIRE(nics.size() == 2);
  CHECK_FALSE(topology.part(nics[0]).pci);
  CHECK(topology.port(nics[0], 0).name == "rxe1");
  REQUIRE(topology.part(nics[1]).pci);
  REQUIRE(topology.ports(nics[1]).size() == 1);
  CHECK(topology.port(nics[1], 0).name == "rxe0");
  CHECK(topology.port(nics[1], 0).gbit_per_s == 2.5);
}

TEST_CASE("junk in files is nothing known, and a folder that is no machine is named") {
  const FakeMachine machine;
  machine.put("sys/devices/system/node/nodex/cpumap", "ff");
  machine.put("sys/devices/system/node/node99999999999999/cpumap", "ff");
  const std::string gpu = machine.gpu("0000:00/0000:00:02.0", -1);
  machine.put(gpu + "/max_link_width", "99999999999999999999");
  machine.put(gpu + "/max_link_speed", "Unknown");
  machine.put(gpu + "/numa_node", "junk");
  machine.put("sys/bus/pci/devices/readme", "none");
  machine.put("proc/cpuinfo", ":\n:x\nmodel\t:\ncpu family\t: -3");
  const Topology topology = found(machine);
  REQUIRE(topology.all<Gpu>().size() == 1);
  CHECK(topology.part(topology.all<Gpu>()[0]).pci->link.bytes_per_s() == 0);
  machine.put(gpu + "/max_link_width", "255");  // the kernel's word for an unknown one
  machine.put(gpu + "/current_link_width", "255");
  CHECK(found(machine).part(topology.all<Gpu>()[0]).pci->link.lanes == 0);
  const auto none = discover(machine.root() / "nothing");
  REQUIRE_FALSE(none);
  CHECK(none.error().code == Code::invalid_argument);
  CHECK(none.error().what.find("nothing/sys/devices/system/node") != std::string::npos);
}
