// What NVIDIA's driver tells of its GPUs (NVML), opened at run time: their numbers, compute capabilities, NVLinks,
// and links to the processor of their package.
#pragma once
#include <string>
#include <vector>

#include "topo/discover.h"

namespace gyre::topo {

/// All GPUs, by NVML's numbers. Links that are down are left out. None where there is no driver; of one that can't be asked a warning.
/// Error: the driver is there and does not answer, with the function that failed and its words. Takes some 10 ms. `library`: a file, or a
/// name for the system's search.
Result<std::vector<DriverGpu>> read_nvml(const std::string& library = "libnvidia-ml.so.1");

}  // namespace gyre::topo
