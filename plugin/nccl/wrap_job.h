// A communicator's job: how many ranks it has on how many hosts. A profile gives gyre calls by it.
#pragma once
#include "plugin/nccl/wrap_rules.h"
#include "transport/bootstrap.h"

namespace gyre::plugin::nccl::wrap {

/// The rules of a communicator, the same on all of its ranks, which all call this. Those that leave nothing to take are logged.
Result<Rules> rules_among(transport::Bootstrap&);

}  // namespace gyre::plugin::nccl::wrap
