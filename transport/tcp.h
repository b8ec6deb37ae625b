// The TCP backend: plain sockets between processes and hosts, no library. Messages go from and to user memory. A peer that dies shows in
// Worker::failure(); one that closes its endpoint only where something of it was still awaited.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace gyre::transport {

/// By all interfaces that NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY choose. A host that does not answer for `silence` is lost.
/// `buffer_bytes`: of each socket in each direction; 0: what slots need, or the system's choice. Everything made from the worker must be
/// destroyed before it. One thread at a time.
Result<std::unique_ptr<Worker>> open_tcp_worker(Slots, std::chrono::seconds silence = std::chrono::seconds(5), int buffer_bytes = 0);

/// What one end of a connection takes; the kernel's buffers are not counted.
size_t tcp_connection_bytes(const Slots&);

/// One device where an interface has an address, none elsewhere.
std::vector<Device> tcp_devices();
std::string why_no_tcp();

}  // namespace gyre::transport
