// What a topology file leaves out is asked of the system. Files in the shapes that clouds ship.
#include "topo/completed.h"

#include <cstdlib>

#include "test/catch.h"
#include "test/kept_log.h"
#include "test/text.h"
#include "test/topo/fake_machine.h"
#include "topo/discover.h"
#include "topo/nccl_xml.h"
#include "topo/this_machine.h"

using namespace gyre;
using namespace gyre::topo;
using test::error_of;
using test::FakeMachine;

namespace {

std::string system_of(const std::string& inside) { return "<system version=\"1\">\n" + inside + "</system>\n"; }

Topology completed_from(const std::string& inside, const FakeMachine& machine, const std::vector<DriverGpu>& driver = {}) {
  const auto told = read_nccl_xml(system_of(inside));
  INFO(error_of(told));
  REQUIRE(told);
  return completed(told->at(0), *discover(machine.root(), driver));
}

/// The name and the distance of each GPU's best way out.
std::vector<std::string> best_ways(const Topology& topology) {
  std::vector<std::string> all;
  for (const auto& ways : ways_out(topology)) {
    all.push_back(ways.empty() ? "none" : topology.port(ways[0].nic, ways[0].port).name + " " + std::string(text(ways[0].path.distance)));
  }
  return all;
}
using Ways = std::vector<std::string>;

/// A virtual machine in which nothing is near anything: functions right below host bridges, as many GPUs as NICs.
void make_flat(const FakeMachine& machine, const std::vector<std::string>& gpus, const std::vector<std::string>& nics) {
  machine.x86();
  machine.numa(0, "ff");
  const auto below = [](const std::string& address) { return address.substr(0, address.rfind(':')) + "/" + address; };
  for (const std::string& gpu : gpus) machine.pci(below(gpu), {"0x030200", "0x10de", -1, "", 0, 0});
  for (size_t i = 0; i < nics.size(); ++i)
    machine.rdma(machine.pci(below(nics[i]), {"0x020700", "0x15b3", -1, "", 0, 0}), "mlx5_" + std::to_string(i), "200 Gb/sec (4X HDR)");
}

}  // namespace

TEST_CASE("switches of a file, and the names of its NICs of the system: each GPU goes out by the NIC on its switch") {
  const FakeMachine machine;
  make_flat(machine, {"0001:00:00.0", "0002:00:00.0"}, {"0101:00:00.0", "0102:00:00.0"});
  CHECK(best_ways(*discover(machine.root())) == Ways{"mlx5_0 PHB", "mlx5_1 PHB"});
  const Topology whole = completed_from(
      "<cpu numaid=\"0\" affinity=\"0000ffff\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"143\" modelid=\"49\">\n"
      "<pci busid=\"ffff:ff:01.0\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">\n"
      " <pci busid=\"0001:00:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\"/>\n"
      " <pci busid=\"0102:00:00.0\" class=\"0x020700\" link_speed=\"16 GT/s\" link_width=\"16\"/></pci>\n"
      "<pci busid=\"ffff:ff:02.0\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">\n"
      " <pci busid=\"0002:00:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\"/>\n"
      " <pci busid=\"0101:00:00.0\" class=\"0x020700\" link_speed=\"16 GT/s\" link_width=\"16\"/></pci></cpu>\n",
      machine);
  CHECK(best_ways(whole) == Ways{"mlx5_1 PIX", "mlx5_0 PIX"});
  for (const int nic : whole.all<Nic>()) CHECK(whole.ports(nic).size() == 1);
  REQUIRE(whole.all<Numa>().size() == 1);
  CHECK(std::get<Numa>(whole.parts[0].is).vendor == "AuthenticAMD");  // as the file has it
  const Part& gpu = whole.part(whole.all<Gpu>()[0]);
  CHECK(gpu.pci->link.gt_per_s == 16);
  CHECK(gpu.pci->vendor == 0x10de);  // as the system has it
}

TEST_CASE("a file of addresses alone says near which processors they are") {
  const FakeMachine machine;
  make_flat(machine, {"0000:00:16.0", "0000:00:1a.0"}, {"0000:00:17.0", "0000:00:1b.0"});
  const Topology whole = completed_from(
      "<cpu numaid=\"0\"><pci busid=\"0000:00:16.0\"/><pci busid=\"0000:00:1b.0\"/></cpu>\n"
      "<cpu numaid=\"1\"><pci busid=\"0000:00:1a.0\"/><pci busid=\"0000:00:17.0\"/></cpu>\n",
      machine);
  CHECK(best_ways(whole) == Ways{"mlx5_1 PHB", "mlx5_0 PHB"});
  CHECK(whole.all<Switch>().empty());
}

TEST_CASE("a port is where the file has its name; what the file has and the system lacks is down, and the other way round it is added") {
  const FakeMachine machine;
  make_flat(machine, {"0000:00:16.0"}, {"0000:00:17.0"});
  machine.interface(machine.pci("0000:00/0000:00:05.0", {"0x020000", "0x1d0f", -1, "", 0, 0}), "ens5", "25000");
  const Topology whole = completed_from(
      "<cpu numaid=\"0\"><pci busid=\"0000:0f:00.0\" class=\"0x060400\">"
      "<pci busid=\"0000:00:16.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"90\" rank=\"0\"/></pci>"
      "<pci busid=\"0000:10:00.0\" class=\"0x020000\"><nic><net name=\"mlx5_0\" dev=\"0\" speed=\"100000\" port=\"1\" "
      "guid=\"0\"/></nic></pci>"
      "<pci busid=\"0000:11:00.0\" class=\"0x020000\"><nic><net name=\"mlx5_7\" dev=\"1\" speed=\"100000\" port=\"1\" "
      "guid=\"1\"/></nic></pci>"
      "</pci></cpu>\n",
      machine);
  CHECK(best_ways(whole) == Ways{"mlx5_0 PIX"});
  REQUIRE(whole.all<Nic>().size() == 3);
  const Port& port = whole.port(whole.all<Nic>()[0], 0);
  CHECK(port.rdma);  // though its GUID in the file is a number
  CHECK(port.guid != 0);
  CHECK(port.gbit_per_s == 100);
  CHECK_FALSE(whole.port(whole.all<Nic>()[1], 0).up);
  const auto ways = ways_out(whole);
  REQUIRE(ways[0].size() == 2);
  CHECK(whole.port(ways[0][1].nic, 0).name == "ens5");
}

TEST_CASE("what the file does not have is where the system has it; of its GPUs the driver tells what the file does not") {
  const FakeMachine machine;
  test::make_dgx(machine);
  std::vector<DriverGpu> driver(2);
  driver[0] = {*parse_pci_address("0000:13:00.0"), {0, 90, {{std::nullopt, pci_nvswitch, 18}}, 1, 4e9}};
  driver[1] = {*parse_pci_address("0000:23:00.0"), {1, 90, {{std::nullopt, pci_nvswitch, 18}}, 0, 0}};
  const Topology shown = *discover(machine.root(), driver);
  const Topology whole = completed_from(
      "<cpu numaid=\"0\"><pci busid=\"0000:11:00.0\" class=\"0x060400\" link_speed=\"8.0 GT/s PCIe\" link_width=\"8\"/>"
      "<pci busid=\"0000:23:00.0\" class=\"0x030200\"><gpu><nvlink target=\"0000:13:00.0\" count=\"2\"/></gpu></pci></cpu>\n",
      machine, driver);
  CHECK(whole.all<Gpu>().size() == 8);
  CHECK(whole.all<Nic>().size() == shown.all<Nic>().size());
  CHECK(whole.all<Numa>().size() == 2);
  const auto by_address = [&](const char* address) {
    const auto part =
        std::ranges::find_if(whole.parts, [&](const Part& of) { return of.pci && of.pci->address == parse_pci_address(address); });
    REQUIRE(part != whole.parts.end());
    return static_cast<int>(part - whole.parts.begin());
  };
  const int told = by_address("0000:23:00.0"), added = by_address("0000:13:00.0");
  CHECK(whole.gpu(told).index == 1);
  CHECK(whole.gpu(told).nvlinks.size() == 1);
  CHECK(whole.gpu(told).nvlinks[0].links == 2);
  CHECK(whole.gpu(added).nvlinks[0].links == 18);
  CHECK(whole.gpu(added).c2c_links == 1);
  CHECK(whole.part(added).parent == by_address("0000:11:00.0"));
  CHECK(whole.part(whole.part(added).parent).pci->link.lanes == 8);  // as the file has it
  CHECK(whole.part(told).parent == 0);
  for (size_t part = 0; part < whole.parts.size(); ++part) CHECK(whole.parts[part].parent < static_cast<int>(part));
}

TEST_CASE("a machine completed by itself is the same") {
  const FakeMachine machine;
  test::make_dgx(machine);
  const Topology shown = *discover(machine.root());
  CHECK(write_nccl_xml(completed(read_nccl_xml(write_nccl_xml(shown))->at(0), shown)) == write_nccl_xml(shown));
}

TEST_CASE("where its file can't be used, this machine is what the system shows, and a warning says why") {
  ::setenv("NCCL_TOPO_FILE", "/nowhere.xml", 1);
  {
    const test::KeptLog log;
    CHECK(static_cast<bool>(this_machine()) == static_cast<bool>(discover("/")));
    CHECK(log.has("NCCL_TOPO_FILE /nowhere.xml: "));
  }
  CHECK_FALSE(read_this_machine());
  ::unsetenv("NCCL_TOPO_FILE");
}

TEST_CASE("this machine's file is named where it is used, and where it can't be") {
  const FakeMachine machine;
  make_flat(machine, {"0000:00:16.0"}, {"0000:00:17.0"});
  const auto shown = discover(machine.root());
  const std::string file = (machine.root() / "machine.xml").string();
  machine.put("machine.xml",
              system_of("<cpu numaid=\"0\"><pci busid=\"0000:00:16.0\"/></cpu><cpu numaid=\"7\"><pci busid=\"0000:00:17.0\"/></cpu>"));
  {
    const test::KeptLog log;
    const auto whole = this_machine_by(file, shown);
    REQUIRE(whole);
    CHECK(best_ways(*whole) == Ways{"mlx5_0 SYS"});
    CHECK(log.has("NCCL_TOPO_FILE " + file));
  }
  CHECK(this_machine_by(file, discover(machine.root() / "nothing"))->all<Numa>().size() == 2);
  CHECK(error_of(this_machine_by(file + "x", shown)).starts_with("NCCL_TOPO_FILE " + file + "x: "));
  machine.put("machine.xml", "<system version=\"1\">\n <cpu numaid=\"zero\"/></system>");
  CHECK(error_of(this_machine_by(file, shown)).starts_with("NCCL_TOPO_FILE " + file + ":2:3: "));
}
