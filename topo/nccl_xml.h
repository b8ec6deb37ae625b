// NCCL's topology file (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): machines as clouds describe them, since their virtual machines can't.
#pragma once
#include <string>
#include <string_view>

#include "topo/topology.h"

namespace gyre::topo {

/// What stands for the address of an NVSwitch that is not shown: in a virtual machine, and where a fabric joins several hosts. NVML's bits
/// are all set, and NCCL's releases cut its text differently: "fffffff:ff:ff.0" is one, too.
constexpr std::string_view hidden_switch = "fffffff:ffff:ff";

/// Its hosts, in the order of their first processors: one, unless NCCL has dumped what NVLinks join across hosts (GB200 NVL72). Version 1,
/// the one there is. Elements and attributes that say nothing of the hardware are passed over, as NCCL does.
/// Error: invalid_argument with LINE:COLUMN and what is wrong there; invalid_usage where gyre was built without pugixml.
Result<std::vector<Topology>> read_nccl_xml(std::string_view text);
/// The same of a file. `named`: what has named it; it and the path begin an error.
Result<std::vector<Topology>> read_nccl_file(std::string_view named, const std::string& path);

/// As NCCL's own parser takes it, which is not all of XML: no declaration, no tabs, one blank between attributes.
std::string write_nccl_xml(const Topology&);

}  // namespace gyre::topo
