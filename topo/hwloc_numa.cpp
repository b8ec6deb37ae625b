#include "topo/hwloc_numa.h"

#include "base/log.h"

#ifdef GYRE_HAVE_HWLOC
#include <hwloc.h>

#include <memory>

namespace gyre::topo {
namespace {

using Loaded = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

Loaded load() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return {nullptr, hwloc_topology_destroy};
  Loaded machine(made, hwloc_topology_destroy);
  // No more than these: to look for GPUs hwloc's own plugins would start their drivers.
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_BRIDGE, HWLOC_OBJ_PCI_DEVICE})
    hwloc_topology_set_type_filter(made, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(made) != 0) machine.reset();
  return machine;
}

}  // namespace

PciNuma read_hwloc_numa() {
  const Loaded machine = load();
  if (machine == nullptr) log::warn("hwloc can't load this machine");
  PciNuma nodes;
  hwloc_obj_t function = nullptr;
  while (machine != nullptr && (function = hwloc_get_next_pcidev(machine.get(), function)) != nullptr) {
    const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(machine.get(), function);
    if (near == nullptr || near->nodeset == nullptr || hwloc_bitmap_weight(near->nodeset) != 1) continue;
    const auto& pci = function->attr->pcidev;
    nodes.emplace(PciAddress{pci.domain, pci.bus, pci.dev, pci.func}, hwloc_bitmap_first(near->nodeset));
  }
  return nodes;
}

}  // namespace gyre::topo
#else
gyre::topo::PciNuma gyre::topo::read_hwloc_numa() { return {}; }
#endif
