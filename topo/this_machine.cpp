#include "topo/this_machine.h"

#include "base/log.h"
#include "topo/discover.h"
#include "topo/hwloc_numa.h"
#include "topo/nvml.h"

namespace gyre::topo {
namespace {

Result<Topology> read_this_machine() {
  const auto gpus = read_nvml();
  if (!gpus) log::warn("NVLinks are not known: {}", gpus.error().what);
  return discover("/", gpus ? *gpus : std::vector<DriverGpu>(), read_hwloc_numa());
}

}  // namespace

const Result<Topology>& this_machine() {
  static const auto& machine = *new Result<Topology>(read_this_machine());  // threads may ask while the process ends
  return machine;
}

}  // namespace gyre::topo
