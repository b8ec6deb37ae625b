// Whether a GPU's kernels read from another one what was written there: where a host's IOMMU or PCI switches stand between GPUs, CUDA says
// that they reach each other, and they read something else, or nothing. It must not know: ranks, messages.
#pragma once
#include <chrono>
#include <memory>

#include "kernels/gpu.h"

namespace gyre::engine {

class DeviceProbe {
 public:
  static constexpr size_t bytes = 4096;

  static Result<DeviceProbe> open(kernels::Gpu&);
  /// Leaves the pattern of that seed in memory of this GPU. After an error it may still be written there, at any time.
  Status write(std::byte* at, uint64_t seed);
  /// Error: the pattern of that seed is not there.
  Status read(const std::byte* at, uint64_t seed);

 private:
  explicit DeviceProbe(kernels::Gpu& gpu) : gpu_(&gpu) {}
  Status renew();
  Result<bool> copied(const std::byte* from, std::byte* to);

  kernels::Gpu* gpu_;
  kernels::GpuMemory pinned_;
  std::unique_ptr<kernels::Stream> stream_;
};

}  // namespace gyre::engine
