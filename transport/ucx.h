// The UCX backend: posted endpoints over whatever UCX finds (TCP, shared memory, InfiniBand, RoCE), between processes and hosts. UCX's
// own options (UCX_TLS, UCX_NET_DEVICES, …) stay the user's. A Worker owns a UCX context and worker of its own, so that several threads
// need no lock between them. A peer that dies shows in Worker::failure() within a second or so; one that closes its endpoint does not.
// ucp.h stays behind this header.
#pragma once
#include <memory>
#include <vector>

#include "transport/transport.h"

namespace gyre::transport {

/// Everything made from the worker must be destroyed before it, and by its thread.
Result<std::unique_ptr<Worker>> open_ucx_worker(Slots);

/// One device where a UCX context can be opened, none elsewhere. Which networks are used is UCX's choice.
std::vector<Device> ucx_devices();
/// What UCX said where there are none.
std::string why_no_ucx();

}  // namespace gyre::transport
