// A machine's topology for people: a tree, and a table of distances as `nvidia-smi topo -m` has it.
#pragma once
#include <string>

#include "topo/topology.h"

namespace gyre::perf {

/// NUMA nodes, switches, GPUs and NICs, each below what it hangs on, with its link; a GPU with the port by which it goes out.
std::string topology_tree(const topo::Topology&);

/// A row and a column for each GPU and each NIC's port: NV<links>, PIX, PXB, PHB or SYS; and for each GPU its ways to other machines.
/// Empty without GPUs.
std::string topology_table(const topo::Topology&);

/// "GPU 3", or by its address where it has no number; "mlx5_0", "mlx5_0:2".
std::string gpu_name(const topo::Topology&, int part);
std::string port_name(const topo::Port&);
/// For a box of a picture: a longer one loses its middle, since names of a machine's NICs differ in their ends.
std::string shortened(const std::string& name);
std::string whole_if_shortened(const std::string& name);  ///< all of a name that is shown shortened; else empty
constexpr size_t most_of_name = 15;                       ///< letters; Linux lets an interface's name have as many

}  // namespace gyre::perf
