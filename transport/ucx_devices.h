// The network devices that UCX can open here, with what it says of their speed. UCX's upper layer does not tell them, so this asks the
// lower one (uct), opening each device for a moment: one that does not open is none that can be used. uct.h stays behind this header.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "transport/net_device.h"
#include "transport/ucx_selection.h"

namespace gyre::transport::ucx {

struct Devices {
  std::vector<NetMachine::UcxDevice> networks;
  /// Set instead where UCX_TLS allows no network that is here, but the memory of the host.
  std::optional<NetMachine::UcxDevice> shared_memory;
  /// Set instead of all where the UCX found can't be asked for its networks: those that it would be allowed to use.
  std::optional<Selection> selection;
  std::vector<std::string> unused;  ///< "eth0 (UCX_NET_DEVICES=mlx5_0:1)"
};
/// Nothing stays open.
Result<Devices> query_devices();

}  // namespace gyre::transport::ucx
