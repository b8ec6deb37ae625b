// Reads a machine's topology from its sysfs.
#pragma once
#include <filesystem>
#include <map>
#include <span>

#include "topo/topology.h"

namespace gyre::topo {

/// What only the GPU's driver tells (NVML).
struct DriverGpu {
  PciAddress address;
  Gpu gpu;
};

/// Near which NUMA node PCI functions are, as others than sysfs say.
using PciNuma = std::map<PciAddress, int>;

/// The machine whose /sys and /proc lie under `root`: "/" is this one; tests and users bring others. GPUs are NVIDIA's display controllers;
/// without the driver's word they are numbered by PCI address and have no NVLinks. A file that is missing or says nothing leaves what it
/// would have told unknown. `numa`: of functions whose node sysfs does not say. Error: invalid_argument if there is neither a NUMA node nor
/// a PCI device, naming what was looked for.
Result<Topology> discover(const std::filesystem::path& root, std::span<const DriverGpu> driver = {}, const PciNuma& numa = {});

}  // namespace gyre::topo
