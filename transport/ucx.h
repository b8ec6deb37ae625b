// The UCX backend: posted endpoints over whatever UCX finds (TCP, shared memory, InfiniBand, RoCE), between processes and hosts. UCX's
// own options (UCX_TLS, UCX_NET_DEVICES, …) stay the user's. A Worker owns a UCX context and worker of its own, so that several threads
// need no lock between them. A peer that dies shows in Worker::failure() within a second or so; one that closes its endpoint does not.
// ucp.h stays behind this header.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace gyre::transport {

/// What a worker uses of UCX. As it is: what UCX chooses and the user's variables allow.
struct UcxWay {
  std::string name = "ucx";      ///< for messages
  std::string devices{};         ///< as UCX_NET_DEVICES; of several, large messages are spread over all
  size_t rails = 1;              ///< how many devices those are
  std::string transports{};      ///< as UCX_TLS
  bool local = false;            ///< shared memory only, of which UCX (1.13) can't tell that a peer is lost
  bool reads_processes = false;  ///< may read and write the peer's memory in place, which the kernel may forbid
  size_t requests = 256;         ///< that one endpoint can have under way
  bool keepalive = true;         ///< UCX probes idle peers; over RDMA it takes one that is stopped for dead, so not where others watch
  bool wakes = false;            ///< Worker::arm() can be asked; UCX passes over what can't wake a sleeper then
  std::vector<std::string> flushes{};  ///< devices that write GPU memory themselves, and by a read make it visible there
};

/// Memory that the UCX found here can move besides the host's.
struct UcxMemoryKinds {
  bool cuda = false;
};
UcxMemoryKinds ucx_memory();

/// The ways between two processes by these network devices, the fastest first: shared memory, the same where reading the peer's memory
/// is forbidden, the network. None is used that the user's UCX_TLS excludes.
std::vector<UcxWay> ucx_ways(const std::vector<std::string>& devices);

/// Everything made from the worker must be destroyed before it. One thread at a time.
Result<std::unique_ptr<Worker>> open_ucx_worker(Slots, const UcxWay& = {});

/// One device where a UCX context can be opened, none elsewhere. Which networks are used is UCX's choice.
std::vector<Device> ucx_devices();
/// What UCX said where there are none.
std::string why_no_ucx();

}  // namespace gyre::transport
