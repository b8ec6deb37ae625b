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

Result<Topology> shown_by_system() {
  const auto gpus = read_nvml();
  if (!gpus) log::warn("NVLinks are not known: {}", gpus.error().what);
  return discover("/", gpus ? *gpus : std::vector<DriverGpu>(), read_hwloc_numa());
}

const char* named_file() {
  const char* const file = std::getenv(variable);
  return file != nullptr && *file != '\0' ? file : nullptr;
}

Result<Topology> with_what_can_be_used() {
  auto whole = read_this_machine();
  if (whole || named_file() == nullptr) return whole;
  log::warn("{}: the system alone tells this machine's map", whole.error().what);
  return shown_by_system();
}

}  // namespace

Result<Topology> read_this_machine() {
  const char* const file = named_file();
  return file != nullptr ? this_machine_by(file, shown_by_system()) : shown_by_system();
}

const Result<Topology>& this_machine() {
  static const auto& machine = *new Result<Topology>(with_what_can_be_used());  // threads may ask while the process ends
  return machine;
}

Result<Topology> this_machine_by(const std::string& file, const Result<Topology>& shown) {
  auto hosts = GYRE_TRY(read_nccl_file(variable, file));
  const std::string others = hosts.size() > 1 ? fmt::format(", of {} hosts in it the first", hosts.size()) : "";
  log::info("{} {}: taken for this machine's map{}", variable, file, others);
  return shown ? completed(std::move(hosts[0]), *shown) : std::move(hosts[0]);
}

}  // namespace gyre::topo
