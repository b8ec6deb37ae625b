#include <map>
#include <mutex>

#include "kernels/cuda_gpu.h"
#include "plugin/nccl/device_on_gpu.h"

namespace gyre::plugin::nccl {

Result<MakeOnGpu> use_gpu(int device) {
  static std::mutex mutex;
  static auto& gpus = *new std::map<int, std::unique_ptr<kernels::Gpu>>;  // communicators may end with the process
  const std::lock_guard lock(mutex);
  auto gpu = gpus.find(device);
  if (gpu == gpus.end()) gpu = gpus.emplace(device, GYRE_TRY(kernels::open_cuda_gpu(device))).first;
  return DeviceOnGpu::on(*gpu->second);
}

}  // namespace gyre::plugin::nccl
