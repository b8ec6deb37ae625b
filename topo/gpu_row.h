// What a rank tells the others of its GPU: what that is to the other GPUs of the machine and to the network. Ranks put these together
// (gpu_rings.h), so that none need speak for a machine. GPUs and ports are names here, which need only differ within a machine.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "topo/topology.h"

namespace gyre::topo {

struct GpuRow {
  struct Other {
    std::string gpu;
    Distance distance = Distance::system;
    int direct = 0;  ///< NVLinks that join just the two

    bool operator==(const Other&) const = default;
  };
  std::string gpu;                 ///< by its PCI address
  int switched = 0;                ///< NVLinks of it that end at switches
  std::vector<Other> others;       ///< all GPUs of the machine but this
  std::vector<std::string> rails;  ///< the port by which it goes out, and those by which it could as well: "mlx5_0:1", "eth0"

  bool operator==(const GpuRow&) const = default;
};

/// Error: invalid_argument where there is no GPU at this address.
Result<GpuRow> gpu_row(const Topology&, const PciAddress&);

std::string text(const GpuRow&);
/// Error: invalid_argument: it is no such text, and what is wrong with it.
Result<GpuRow> parse_gpu_row(std::string_view);

}  // namespace gyre::topo
