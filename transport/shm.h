// Ranks of one host through shared memory. A listener has a mailbox; the connecting side makes the memory of the connection and puts its
// address there; the connection is ready once the other side has really opened it.
#pragma once
#include "transport/transport.h"

namespace gyre::transport {

Result<std::unique_ptr<Worker>> open_shm_worker(Slots);
/// What a connection takes, both ends together, and what a worker takes besides.
size_t shm_connection_bytes(const Slots&);
size_t shm_worker_bytes();

}  // namespace gyre::transport
