// NVIDIA's GPUs.
#pragma once
#include "kernels/gpu.h"

namespace gyre::kernels {

/// The device of this number, as CUDA counts. All kernels are loaded now, since whoever loads one later may wait for the GPU while it holds
/// the context's lock. From any thread; the calling thread's current device stays what it is.
Result<std::unique_ptr<Gpu>> open_cuda_gpu(int device);

}  // namespace gyre::kernels
