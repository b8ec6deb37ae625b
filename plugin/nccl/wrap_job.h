// A communicator's job: how many ranks it has on how many hosts. A profile gives gyre calls by it, but none on one node where NVLinks join
// all GPUs: there they are NCCL's.
#pragma once
#include <optional>

#include "plugin/nccl/wrap_rules.h"
#include "transport/bootstrap.h"

namespace gyre::plugin::nccl::wrap {

/// The rules of a communicator, the same on all of its ranks, which all call this. Those that leave nothing to take are logged. `gpu`: the
/// device of this rank, where calls are on GPU memory.
Result<Rules> rules_among(transport::Bootstrap&, std::optional<int> gpu);

}  // namespace gyre::plugin::nccl::wrap
