// A machine's topology for people: a tree, and a table of distances as `nvidia-smi topo -m` has it.
#pragma once
#include <string>

#include "topo/topology.h"

namespace gyre::perf {

/// NUMA nodes, switches, GPUs and NICs, each below what it hangs on, with its link.
std::string topology_tree(const topo::Topology&);

/// A row and a column for each GPU and each NIC's port: NV<links>, PIX, PXB, PHB or SYS; and for each GPU its ways to other machines.
/// Empty without GPUs.
std::string topology_table(const topo::Topology&);

}  // namespace gyre::perf
