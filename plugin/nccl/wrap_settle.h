// Who runs calls on host memory: gyre, where all ranks are willing, which they tell each other for each call (wrap_comm.h).
#pragma once
#include <span>

#include "plugin/nccl/wrap_issue.h"

namespace gyre::plugin::nccl::wrap {

/// One that is in no group, or a group of such, of one communicator. Runs them.
Result<ncclResult_t> settle(std::span<const Issued>);

}  // namespace gyre::plugin::nccl::wrap
