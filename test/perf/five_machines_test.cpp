// Five machines from the system's files to what a user sees, and through a file of NCCL's.
#include "test/topo/five_machines.h"
#include "perf/topology_channels.h"
#include "perf/topology_svg.h"
#include "perf/topology_text.h"
#include "test/catch.h"
#include "test/text.h"
#include "topo/nccl_xml.h"

using namespace gyre;
using test::contains;

namespace {

/// Without what NCCL's files have no words for: lanes that a link has lost, and ports that are down.
topo::Topology as_files_say(topo::Topology machine) {
  for (topo::Part& part : machine.parts) {
    if (part.pci) part.pci->link.max_lanes = part.pci->link.lanes;
    if (auto* nic = std::get_if<topo::Nic>(&part.is)) std::erase_if(nic->ports, [](const topo::Port& port) { return !port.up; });
  }
  return machine;
}

std::string shown(const topo::Topology& machine) {
  std::string all = perf::topology_tree(machine) + perf::topology_table(machine);
  for (const int nodes : {1, 2, 3}) all += perf::topology_channels(machine, nodes);
  return all;
}

}  // namespace

TEST_CASE("what a machine is, its ways out and its channels are the same after it was dumped and read") {
  for (const test::NamedMachine& named : test::five_machines) {
    const topo::Topology found = as_files_say(named.topology());
    const std::string dumped = topo::write_nccl_xml(found);
    const auto read = topo::read_nccl_xml(dumped);
    INFO(named.name << ": " << test::error_of(read) << '\n' << dumped);
    REQUIRE(read);
    REQUIRE(read->size() == 1);
    CHECK(shown(read->at(0)) == shown(found));
    for (const int nodes : {1, 2}) CHECK(perf::topology_svg(read->at(0), "one", nodes) == perf::topology_svg(found, "one", nodes));
    CHECK(topo::write_nccl_xml(read->at(0)) == dumped);
  }
}
