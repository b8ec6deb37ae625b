// The networks of this machine as a net plugin offers them: one NetDevice per NIC port, with what the system (sysfs, a root that tests
// replace), UCX and verbs know of it, chosen by NCCL's own variables. RDMA devices where there are any, else network interfaces, so that no
// NIC is offered twice. Knows nothing of NCCL's structs.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gyre::transport {

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t length = 0;  ///< 0: none
};
/// Numeric, without the port: "192.0.2.2", "fe80::1%eth0".
std::string text(const SocketAddress&);

/// "mlx5_0:1" as device and port. Port 0: it has none, so it is no RDMA device's name.
std::pair<std::string, int> split_port(const std::string& name);

struct NetDevice {
  std::string name;       ///< UCX's: "mlx5_0:1", "eth0"
  std::string interface;  ///< the network interface whose address the listener takes: "eth0"
  SocketAddress address;  ///< of that interface, port 0
  std::string
      pci_path;        ///< real path in sysfs of the chip's first function, such as /sys/devices/pci0000:00/0000:00:05.0; empty: not on PCI
  uint64_t guid = 0;   ///< equal for the ports of one chip, different else
  int port = 1;        ///< different for the ports of one chip
  int mbit_per_s = 0;  ///< 0: unknown
  float latency_us = 0;  ///< 0: unknown
  int rail = -1;         ///< from NCCL_IB_HCA; -1: not said
  int plane = -1;        ///< as rail
  bool rdma = false;
  bool gpu_memory = false;  ///< an RDMA device that reads and writes CUDA memory itself, for verbs if that can use it, else for UCX
  bool dmabuf = false;      ///< by way of DMA-BUF
  bool loopback = false;
  bool ucx = false;           ///< UCX can use it
  bool verbs = false;         ///< verbs can use it
  std::string verbs_words{};  ///< of an RDMA device: how verbs reaches it ("RoCE v2 10.0.0.1"), or why it can't
};

/// NCCL's variables, as text, as NCCL reads them. Empty: not set.
struct NetFilter {
  std::string socket_ifname;  ///< NCCL_SOCKET_IFNAME: [^][=]prefix,prefix…
  std::string socket_family;  ///< NCCL_SOCKET_FAMILY: AF_INET, AF_INET6
  std::string ib_hca;         ///< NCCL_IB_HCA: [^][=]name[:port[:rail[:plane]]],…
  std::string ib_disable;     ///< NCCL_IB_DISABLE: not 0: no RDMA devices
  static NetFilter from_environment();
};

/// What is known of a machine. Tests invent one.
struct NetMachine {
  /// In the system's order. An interface may be listed several times, with different addresses.
  struct Interface {
    std::string name;
    SocketAddress address;
    bool running = false;
    bool loopback = false;
  };
  struct UcxDevice {
    std::string name;  ///< as UCX_NET_DEVICES takes it
    double bytes_per_s = 0;
    float latency_us = 0;
    bool gpu_memory = false;  ///< reads and writes CUDA memory itself
    bool dmabuf = false;      ///< by way of DMA-BUF
  };
  struct VerbsPort {
    std::string name;                         ///< "mlx5_0:1"
    std::string address;                      ///< "RoCE v2 10.0.0.1"
    std::string obstacle;                     ///< why verbs can't use it; empty: it can
    bool gpu_memory = false, dmabuf = false;  ///< as of UcxDevice
  };
  std::filesystem::path sysfs = "/sys";
  std::string host;  ///< different for every machine
  std::vector<Interface> interfaces;
  std::vector<UcxDevice> ucx;              ///< network devices that UCX can open and the user's UCX_ variables allow
  std::optional<UcxDevice> shared_memory;  ///< instead of them: UCX_TLS allows UCX no network, only the memory of the host
  std::vector<std::string> unused_by_ucx;  ///< devices that those variables leave out, or that did not open, each with the reason
  std::vector<VerbsPort> verbs;            ///< all RDMA ports, if verbs may be used
  bool verbs_only = false;                 ///< nothing else may be
};

/// Those of this machine.
Result<std::vector<NetMachine::Interface>> read_interfaces();
/// At least one device. The error says which variable with which value left none, and what there is.
Result<std::vector<NetDevice>> choose_net_devices(const NetMachine&, const NetFilter&);
/// What may be used of this machine's networks: as GYRE_TRANSPORT says.
enum class NetUse : uint8_t { all, ucx, verbs };
/// Of this machine. Opens what UCX and verbs have for a moment, and leaves nothing open.
Result<std::vector<NetDevice>> find_net_devices(const NetFilter&, NetUse = NetUse::all);

}  // namespace gyre::transport
