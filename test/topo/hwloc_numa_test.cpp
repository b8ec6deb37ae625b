// hwloc on a machine that is not here, by a file of its own form.
#include "topo/hwloc_numa.h"

#include <cstdlib>
#include <fstream>

#include "test/catch.h"
#include "test/folder.h"
#include "test/topo/fake_machine.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

/// Two nodes of two processors each; a GPU at the second, and a NIC at the machine as a whole.
constexpr const char* two_nodes = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
  <object type="Package" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="2">
   <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3" local_memory="1"/>
   <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="4"/>
  </object>
  <object type="Package" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="5">
   <object type="NUMANode" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="6" local_memory="1"/>
   <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="7"/>
   <object type="Bridge" gp_index="8" bridge_type="0-1" depth="0" bridge_pci="0000:[40-40]">
    <object type="PCIDev" gp_index="9" pci_busid="0000:40:04.0" pci_type="0302 [10de:2330] [10de:0001] a1" pci_link_speed="0.0"/>
   </object>
  </object>
  <object type="Bridge" gp_index="10" bridge_type="0-1" depth="0" bridge_pci="0000:[00-00]">
   <object type="PCIDev" gp_index="11" pci_busid="0000:00:03.0" pci_type="0200 [15b3:1021] [15b3:0001] 00" pci_link_speed="0.0"/>
  </object>
 </object>
</topology>
)";

}  // namespace

TEST_CASE("hwloc tells near which node a function is where sysfs does not") {
#ifndef GYRE_HAVE_HWLOC
  WARN("skipped: built without hwloc");
  CHECK(read_hwloc_numa().empty());
#else
  const test::Folder folder;
  const std::string file = folder.path() / "machine.xml";
  std::ofstream(file) << two_nodes;
  REQUIRE(::setenv("HWLOC_XMLFILE", file.c_str(), 1) == 0);
  const PciNuma told = read_hwloc_numa();
  REQUIRE(::unsetenv("HWLOC_XMLFILE") == 0);
  CHECK(told == PciNuma{{PciAddress{0, 0x40, 4, 0}, 1}});
#endif
}

TEST_CASE("what sysfs says of a function's node goes before what others say") {
  const test::FakeMachine machine;
  machine.x86();
  machine.numa(0, "1"), machine.numa(1, "2");
  machine.gpu("0000:40/0000:40:04.0", -1);
  machine.gpu("0000:41/0000:41:04.0", 0);
  const auto found = discover(machine.root(), {}, {{*parse_pci_address("0000:40:04.0"), 1}, {*parse_pci_address("0000:41:04.0"), 1}});
  REQUIRE(found);
  const auto gpus = found->all<Gpu>();
  REQUIRE(gpus.size() == 2);
  const auto node = [&](size_t gpu) {
    const int parent = found->parts[static_cast<size_t>(gpus[gpu])].parent;
    return std::get<Numa>(found->parts[static_cast<size_t>(parent)].is).id;
  };
  CHECK(node(0) == 0);
  CHECK(node(1) == 1);
}
