// Ranks meet at the process that made the unique id, which must be rank 0's. Where rank 0 is another one, it rings there: else nobody would
// open to those who wait at that door. A bell is a meeting of two of its own.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "base/result.h"
#include "transport/bootstrap.h"

namespace gyre::plugin::nccl {

/// The port of a bell. A thread calls `rung` when somebody of that job rings, until it is `over`, or so long: as ranks wait there for rank
/// 0, since an id may never be used. 0: there can be none.
uint16_t hang_bell(uint64_t job, std::shared_ptr<const std::atomic<bool>> over, std::function<void()> rung,
                   std::chrono::milliseconds heard_for = std::chrono::minutes(30));
/// Returns when it was heard, or in a few seconds. `at`: the host, the bell's port, the job.
void ring_bell(transport::Rendezvous at);

}  // namespace gyre::plugin::nccl
