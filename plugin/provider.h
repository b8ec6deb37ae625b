// Where the net plugin gets its devices and Workers from: a seam, behind which tests put loopback, and transports that fail.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "plugin/greeting.h"
#include "transport/net_device.h"
#include "transport/transport.h"

namespace gyre::plugin {

struct Way {
  WayKind kind = WayKind::network;
  std::string name;   ///< "shared memory", for messages
  std::string why{};  ///< what there is to say of its rails and of why it comes before others; empty: nothing
};

class Provider {
 public:
  Provider() = default;
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;
  virtual ~Provider() = default;

  /// Called first, once; the options hold for all that follows.
  virtual Result<std::vector<transport::NetDevice>> devices(const Config&) = 0;
  /// Whether CUDA memory can be moved at all; whether by a device, the device says.
  virtual bool cuda() = 0;
  /// The ways that this process has by these devices, the best first.
  virtual std::vector<Way> ways(const std::vector<transport::NetDevice>& members) = 0;
  /// Whether such a Worker may have to be called when nobody asks for anything: since what it sent may need another call to leave this
  /// process, or a peer that recovers from a failure this side's word.
  virtual bool needs_calls(WayKind) { return false; }
  virtual Result<std::unique_ptr<transport::Worker>> open(const std::vector<transport::NetDevice>& members, WayKind) = 0;
};

}  // namespace gyre::plugin
