// The order of NCCL's calls on a communicator and gyre's on GPU memory, whichever streams they are given: by the marks of both.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "plugin/nccl/wrap_comm.h"

namespace gyre::plugin::nccl::wrap {

/// NCCL has calls of a communicator on a stream; however many, it is in the order once.
struct ByNccl {
  std::shared_ptr<Beside> comm;
  cudaStream_t stream;
  size_t declined;  ///< so many of which other ranks may think that gyre runs them
};

/// Of calls that NCCL will launch: after what gyre has of their communicators, on whatever stream.
Status order_after_gyre(const std::vector<ByNccl>&);
/// What NCCL has come to with them, or else whether that has its place in the order.
ncclResult_t note_launched(const std::vector<ByNccl>&, ncclResult_t);

}  // namespace gyre::plugin::nccl::wrap
