// Posted endpoints within one process, for tests of PostedFifo and of the engine where no UCX is. A send and a receive of equal tag meet
// under the connection's mutex, the bytes are copied there, and each side's own progress() then makes its request done: a send
// completes only when it has been matched. With a seed other than 0, completions are late by a random number of progress() calls, so
// that they come out of order. Without `any_memory` what is not registered can't be moved, as over verbs.
#pragma once
#include <cstdint>
#include <memory>

#include "transport/transport.h"

namespace gyre::transport {

Result<std::unique_ptr<Worker>> open_posted_loopback_worker(Slots, uint32_t seed = 0, bool any_memory = true);

}  // namespace gyre::transport
