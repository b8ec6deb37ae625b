#include "transport/verbs/devices.h"

#include <fmt/format.h>

#include <charconv>

#include "base/net_sysfs.h"
#include "transport/net_filter.h"
#include "transport/verbs.h"
#include "transport/verbs/rail.h"

namespace gyre::transport::verbs {
namespace {

Result<std::string> try_port(const std::filesystem::path& sysfs, const std::string& device, uint8_t port) {
  const auto options = GYRE_TRY(PathOptions::from_environment());
  const auto rail = GYRE_TRY(Rail::open(device, port, options, sysfs));
  return rail->address();
}

}  // namespace

std::vector<NetMachine::VerbsPort> query_ports(const std::filesystem::path& sysfs, const NetFilter& filter) {
  const NameList wanted(filter.ib_hca);
  std::vector<NetMachine::VerbsPort> ports;
  for (const auto& [device, number] : sysfs::rdma_ports(sysfs)) {
    NetMachine::VerbsPort port{fmt::format("{}:{}", device, number), {}, {}, false, false};
    if (rdma_disabled(filter) || !wanted.accepts(device, number)) {
      port.obstacle = rdma_disabled(filter) ? "NCCL_IB_DISABLE is set" : "NCCL_IB_HCA=" + filter.ib_hca;
    } else if (auto address = try_port(sysfs, device, static_cast<uint8_t>(number)); address) {
      port.address = *std::move(address);
      const auto gpu = verbs_gpu_memory(device, sysfs);
      port.gpu_memory = gpu.dmabuf || gpu.peer_memory;
      port.dmabuf = gpu.dmabuf;
    } else {
      port.obstacle = address.error().what;
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

}  // namespace gyre::transport::verbs
