// The RDMA ports of this machine, and what verbs can do with each: to know, each is opened for a moment as a connection would open it.
#pragma once
#include <filesystem>
#include <vector>

#include "transport/net_device.h"

namespace gyre::transport::verbs {

/// In the order of their names; empty where sysfs shows none. Those that NCCL_IB_HCA or NCCL_IB_DISABLE exclude are listed, not opened.
std::vector<NetMachine::VerbsPort> query_ports(const std::filesystem::path& sysfs, const NetFilter&);

}  // namespace gyre::transport::verbs
