// This machine, by all who tell of it: sysfs, NVIDIA's driver, hwloc.
#pragma once
#include "topo/topology.h"

namespace gyre::topo {

/// Read when it is first asked for, some 20 ms, and then the same for the whole process. From any thread. Where the driver can't be asked a
/// warning, and no NVLinks. Error: as discover().
const Result<Topology>& this_machine();

}  // namespace gyre::topo
