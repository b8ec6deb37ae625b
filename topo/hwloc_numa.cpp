#include "topo/hwloc_numa.h"

#ifdef GYRE_HAVE_HWLOC
#include <dlfcn.h>
#include <hwloc.h>

#include <memory>

#include "base/log.h"

namespace gyre::topo {
namespace {

struct CloseHwloc {
  void operator()(void* library) const { ::dlclose(library); }
};

/// The library's functions. It is opened at run time, since a program that gyre is loaded into may have another one, or none.
struct Hwloc {
  std::unique_ptr<void, CloseHwloc> library;
  decltype(&hwloc_topology_init) init = nullptr;
  decltype(&hwloc_topology_destroy) destroy = nullptr;
  decltype(&hwloc_topology_set_type_filter) set_type_filter = nullptr;
  decltype(&hwloc_topology_load) load = nullptr;
  decltype(&hwloc_get_obj_by_depth) object = nullptr;
  decltype(&hwloc_bitmap_weight) weight = nullptr;
  decltype(&hwloc_bitmap_first) first = nullptr;

  template <class Function>
  bool find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(library.get(), name));
    return function != nullptr;
  }
};

Hwloc opened() {
  Hwloc hwloc;
  hwloc.library.reset(::dlopen("libhwloc.so.15", RTLD_LAZY | RTLD_LOCAL));  // of hwloc 2, as the header is
  const bool whole = hwloc.library != nullptr && hwloc.find("hwloc_topology_init", hwloc.init) &&
                     hwloc.find("hwloc_topology_destroy", hwloc.destroy) &&
                     hwloc.find("hwloc_topology_set_type_filter", hwloc.set_type_filter) && hwloc.find("hwloc_topology_load", hwloc.load) &&
                     hwloc.find("hwloc_get_obj_by_depth", hwloc.object) && hwloc.find("hwloc_bitmap_weight", hwloc.weight) &&
                     hwloc.find("hwloc_bitmap_first", hwloc.first);
  if (!whole) hwloc.library.reset();
  return hwloc;
}

PciNuma nodes_of(const Hwloc& hwloc, hwloc_topology_t machine) {
  PciNuma nodes;
  hwloc_obj_t function = hwloc.object(machine, HWLOC_TYPE_DEPTH_PCI_DEVICE, 0);
  for (; function != nullptr; function = function->next_cousin) {
    hwloc_obj_t near = function;
    while (near != nullptr && near->cpuset == nullptr) near = near->parent;  // bridges have none
    if (near == nullptr || near->nodeset == nullptr || hwloc.weight(near->nodeset) != 1) continue;
    const auto& pci = function->attr->pcidev;
    nodes.emplace(PciAddress{pci.domain, pci.bus, pci.dev, pci.func}, hwloc.first(near->nodeset));
  }
  return nodes;
}

}  // namespace

PciNuma read_hwloc_numa() {
  const Hwloc hwloc = opened();
  hwloc_topology_t machine = nullptr;
  if (hwloc.library == nullptr || hwloc.init(&machine) != 0) return {};
  // No more than these: to look for GPUs hwloc's own plugins would start their drivers.
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_BRIDGE, HWLOC_OBJ_PCI_DEVICE})
    hwloc.set_type_filter(machine, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  const bool loaded = hwloc.load(machine) == 0;
  if (!loaded) log::warn("hwloc can't load this machine");
  PciNuma nodes = loaded ? nodes_of(hwloc, machine) : PciNuma();
  hwloc.destroy(machine);
  return nodes;
}

}  // namespace gyre::topo
#else
gyre::topo::PciNuma gyre::topo::read_hwloc_numa() { return {}; }
#endif
