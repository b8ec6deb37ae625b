// The smallest transport: ranks are threads of one process. The reference for the others, and what tests run on everywhere.
#pragma once
#include "transport/transport.h"

namespace gyre::transport {

Result<std::unique_ptr<Worker>> open_loopback_worker(Slots);

}  // namespace gyre::transport
