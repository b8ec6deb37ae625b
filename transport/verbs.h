// The verbs backend: posted endpoints over RDMA devices, without a layer in between. A connection is made over TCP, where its listener
// listens, and then runs over one port or several; the TCP connection stays, and tells the peer's goodbye or its end. A Worker owns its
// devices' handles, so that several threads need no lock between them. verbs.h of libibverbs stays behind this header.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "transport/net_device.h"
#include "transport/transport.h"

namespace gyre::transport {

struct VerbsPort {
  std::string device;  ///< "mlx5_0"
  uint8_t number = 1;
};

struct VerbsWay {
  std::vector<VerbsPort> ports;  ///< 1 to 8; both ends of a connection have as many
  SocketAddress address;         ///< of this host, where peers reach its listeners; its port is 0
  std::string sysfs = "/sys";
  bool confirm = false;       ///< GYRE_IB_CONFIRM: a send is done on the receiver's word only
  bool fallback_tcp = false;  ///< GYRE_FALLBACK=tcp: a connection whose last path has failed goes on by TCP
  uint64_t pinned_bytes = 0;  ///< GYRE_PINNED_BYTES: registered at a time, at most; 0: no bound

  /// What the options say.
  void take(const Config&);
};

/// Everything made from the worker must be destroyed before it. One thread at a time.
Result<std::unique_ptr<Worker>> open_verbs_worker(Slots, const VerbsWay&);

}  // namespace gyre::transport
