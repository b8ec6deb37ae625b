#include "topo/this_machine.h"

#include <cstdlib>

#include "base/log.h"
#include "topo/completed.h"
#include "topo/discover.h"
#include "topo/hwloc_numa.h"
#include "topo/nccl_xml.h"
#include "topo/nvml.h"

namespace gyre::topo {
namespace {

constexpr const char* variable = "NCCL_TOPO_FILE";

Result<Topology> read_this_machine() {
  const auto gpus = read_nvml();
  if (!gpus) log::warn("NVLinks are not known: {}", gpus.error().what);
  auto shown = discover("/", gpus ? *gpus : std::vector<DriverGpu>(), read_hwloc_numa());
  const char* const file = std::getenv(variable);
  return file != nullptr && *file != '\0' ? this_machine_by(file, shown) : shown;
}

}  // namespace

const Result<Topology>& this_machine() {
  static const auto& machine = *new Result<Topology>(read_this_machine());  // threads may ask while the process ends
  return machine;
}

Result<Topology> this_machine_by(const std::string& file, const Result<Topology>& shown) {
  auto hosts = GYRE_TRY(read_nccl_file(variable, file));
  const std::string others = hosts.size() > 1 ? fmt::format(", of {} hosts in it the first", hosts.size()) : "";
  log::info("{} {}: taken for this machine's map{}", variable, file, others);
  return shown ? completed(std::move(hosts[0]), *shown) : std::move(hosts[0]);
}

}  // namespace gyre::topo
