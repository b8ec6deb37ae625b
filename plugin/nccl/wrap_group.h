// Groups of calls, which begin and end as NCCL's: at the end of the outermost gyre's collectives come before what NCCL has of the group.
#pragma once
#include "plugin/nccl/wrap_issue.h"

namespace gyre::plugin::nccl::wrap {

/// What a call that a group records has come to: after an error gyre does nothing of the group.
ncclResult_t noted(ncclResult_t);

ncclResult_t start_group();
Result<ncclResult_t> end_group();
/// The group ends, but nothing of it is run.
ncclResult_t simulate_group(ncclSimInfo_t*);

}  // namespace gyre::plugin::nccl::wrap
