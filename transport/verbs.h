// The verbs backend: posted endpoints over RDMA devices, without a layer in between. A connection is made over TCP, where its listener
// listens, and then runs over one port or several; the TCP connection stays, and tells the peer's goodbye or its end. A Worker owns its
// devices' handles, so that several threads need no lock between them. verbs.h of libibverbs stays behind this header.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <span>
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
  std::vector<VerbsPort> ports;     ///< 1 to 8; both ends of a connection need not have as many
  uint32_t first = 0;               ///< which of them a connection's short messages begin on
  SocketAddress address;            ///< of this host, where peers reach its listeners; its port is 0
  std::chrono::seconds silence{5};  ///< GYRE_PEER_TIMEOUT: after which a host that does not answer is gone
  bool confirm = false;             ///< GYRE_IB_CONFIRM: a send is done when its receiver, not only its device, has the message
  bool fallback_tcp = false;        ///< GYRE_FALLBACK=tcp: when the last path has failed, UCX carries on over TCP
  uint64_t pinned_bytes = 0;        ///< GYRE_PINNED_BYTES: most memory registered by a worker; 0: no limit of its own
  /// For tests: what opens the worker that carries on, in UCX's place.
  std::function<Result<std::unique_ptr<Worker>>()> open_fallback{};
  std::string sysfs = "/sys";

  /// What the options say.
  void take(const Config&);
};

/// How a device reaches GPU memory. Opens it for a moment; neither, where it can't be opened. Not run on hardware.
struct VerbsGpuMemory {
  bool dmabuf = false;       ///< by DMA-BUF: its driver, the kernel and libibverbs know it
  bool peer_memory = false;  ///< by its address: a kernel module (nvidia_peermem) tells NICs of it
};
VerbsGpuMemory verbs_gpu_memory(const std::string& device, const std::string& sysfs = "/sys");
/// By these devices, which verbs can use, in their order; a listener takes the first one's address. Short messages begin on `own`, where it
/// is one of them.
VerbsWay verbs_way(std::span<const NetDevice>, std::string_view own = {});
/// By all ports of this machine that verbs can use and the filter allows, narrowed (ports.h); the first that is named is its own. The
/// error says of each port why not.
Result<VerbsWay> every_verbs_port(const NetFilter&, std::span<const std::string> ports = {});

/// Everything made from the worker must be destroyed before it. One thread at a time.
Result<std::unique_ptr<Worker>> open_verbs_worker(Slots, const VerbsWay&);

}  // namespace gyre::transport
