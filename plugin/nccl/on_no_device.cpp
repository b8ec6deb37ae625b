#include "plugin/nccl/on_gpu.h"

namespace gyre::plugin::nccl {

Result<MakeOnGpu> use_gpu(int /*device*/) { return Error{Code::invalid_usage, "gyre was built without CUDA (nvcc)"}; }

}  // namespace gyre::plugin::nccl
