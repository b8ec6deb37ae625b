// Ranks of one host through shared memory. A listener has a mailbox; the connecting side makes the memory of the connection and puts its
// address there; the connection is ready once the other side has really opened it.
#pragma once
#include "transport/transport.h"

namespace gyre::transport {

Result<std::unique_ptr<Worker>> open_shm_worker(Slots);

}  // namespace gyre::transport
