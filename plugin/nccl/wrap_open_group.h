// What the calling thread's group has so far: gyre's twin of the group that NCCL keeps of it. Depth 0: there is none.
#pragma once
#include <vector>

#include "plugin/nccl/wrap_gpu.h"
#include "plugin/nccl/wrap_made.h"
#include "plugin/nccl/wrap_order.h"

namespace gyre::plugin::nccl::wrap {

struct WrapGroup {
  int depth = 0;
  bool is_nccls = false;
  std::vector<Issued> held;
  HeldOnGpu on_gpu;
  std::vector<ByNccl> given;  ///< to NCCL, of communicators that gyre has, too
  ToCome to_come;
  std::vector<Kept> behind;           ///< to be given to NCCL when the group has ended
  ncclResult_t failed = ncclSuccess;  ///< the first call that has
  bool nccl_failed = false;           ///< a call that NCCL was given has
};
WrapGroup& open_group();

/// Gives a call to NCCL, whose errors are its own, and the group's.
ncclResult_t forwarded(const Forward&);
/// Some time after it was issued, so that the communicator may have ended since.
ncclResult_t forwarded(const Issued&);
/// To NCCL, in the group.
void note_given(const std::shared_ptr<Beside>&, cudaStream_t, size_t declined);

}  // namespace gyre::plugin::nccl::wrap
