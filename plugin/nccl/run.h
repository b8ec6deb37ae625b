// Doing what a group holds, in this thread. Every communicator of it has begun a call, and is told what came of its part.
#pragma once
#include "plugin/nccl/group.h"

namespace gyre::plugin::nccl {

/// All operations, or none where one of them is refused beforehand. The first error's code.
ncclResult_t run(const std::vector<Operation>&) noexcept;
/// Those of one communicator one after the other, those of several at the same time.
ncclResult_t run(const std::vector<Task>&) noexcept;

}  // namespace gyre::plugin::nccl
