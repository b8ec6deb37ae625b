#include "plugin/nccl/on_gpu.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "plugin/nccl/cuda_driver.h"

namespace gyre::plugin::nccl {

Result<std::unique_ptr<OnGpu>> join_on_gpus(engine::Communicator& ranks, int device, const std::atomic<bool>* cancelled) {
  MakeOnGpu make;
  std::string lacks = "its program uses no CUDA, or GYRE_DEVICE=host";
  if (cuda::present()) {
    auto opened = use_gpu(device);
    lacks = opened ? "" : opened.error().what;
    if (opened) make = *std::move(opened);
  }
  const auto all = GYRE_TRY(ranks.bootstrap().all_gather(lacks));
  if (const auto without = std::find_if(all.begin(), all.end(), [](const std::string& word) { return !word.empty(); });
      without != all.end()) {
    if (cuda::present()) log::warn("rank {}: no collectives on GPU memory: rank {}: {}", ranks.rank(), without - all.begin(), *without);
    return std::unique_ptr<OnGpu>();
  }
  auto second = GYRE_TRY(ranks.split(0, ranks.rank(), cancelled));
  return make(std::move(second));
}

}  // namespace gyre::plugin::nccl
