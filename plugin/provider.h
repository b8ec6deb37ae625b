// Where the net plugin gets its devices and Workers from: a seam, behind which tests put loopback, and transports that fail.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "plugin/greeting.h"
#include "transport/net_device.h"
#include "transport/transport.h"

namespace gyre::plugin {

struct Way {
  WayKind kind = WayKind::network;
  std::string name;  ///< "shared memory", for messages
};

class Provider {
 public:
  Provider() = default;
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;
  virtual ~Provider() = default;

  virtual Result<std::vector<transport::NetDevice>> devices() = 0;
  /// Whether CUDA memory can be moved at all; whether by a device, the device says.
  virtual bool cuda() = 0;
  /// The ways that this process has by these devices, the best first.
  virtual std::vector<Way> ways(const std::vector<transport::NetDevice>& members) = 0;
  /// Whether what such a Worker calls sent may need another call to leave this process.
  virtual bool keeps_sends(WayKind) { return false; }
  virtual Result<std::unique_ptr<transport::Worker>> open(const std::vector<transport::NetDevice>& members, WayKind) = 0;
};

std::unique_ptr<Provider> ucx_provider();

}  // namespace gyre::plugin
