// This machine, by all who tell of it: NCCL_TOPO_FILE, sysfs, NVIDIA's driver, hwloc.
#pragma once
#include <string>

#include "topo/topology.h"

namespace gyre::topo {

/// As NCCL's users have it: where NCCL_TOPO_FILE is set, what that file says comes first, and the system is asked for the rest; a line at
/// info says so. Where the driver can't be asked a warning, and no NVLinks. Takes some 20 ms. Error: as discover() or read_nccl_file().
Result<Topology> read_this_machine();
/// Read when it is first asked for, and then the same for the whole process, from any thread. A file that can't be used is warned of, and
/// the system tells all. Error: as discover().
const Result<Topology>& this_machine();

/// What that is with NCCL_TOPO_FILE=`file`. `shown`: without it; an error there is none where the file says all.
Result<Topology> this_machine_by(const std::string& file, const Result<Topology>& shown);

}  // namespace gyre::topo
