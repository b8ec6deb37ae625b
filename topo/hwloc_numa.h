// What hwloc knows of a live machine beyond its sysfs: near which NUMA node PCI functions are where firmware does not say (numa_node is
// -1), by hwloc's corrections for known machines and by its users' (HWLOC_PCI_LOCALITY, HWLOC_XMLFILE).
#pragma once
#include "topo/discover.h"

namespace gyre::topo {

/// By address; functions that are near several nodes, or that hwloc does not see, are left out; all where gyre was built without hwloc, or
/// it is not there: it is opened at run time. A machine that hwloc can't load is none, which is logged. Takes some 10 ms.
PciNuma read_hwloc_numa();

}  // namespace gyre::topo
