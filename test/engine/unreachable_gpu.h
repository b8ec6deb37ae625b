// A GPU whose memory no other rank reaches, and that reaches none: what is between GPUs that have no way to each other.
#pragma once
#include "test/engine/gpu_over.h"

namespace gyre::test {

class UnreachableGpu final : public GpuOver {
 public:
  /// `streams_wait`: where false, they have no operations on memory.
  explicit UnreachableGpu(kernels::Gpu& gpu, bool streams_wait = true) : GpuOver(gpu), streams_wait_(streams_wait) {}

  Result<kernels::ReachableMemory> allocate_reachable(size_t) override { return no(); }
  Result<kernels::ReachedMemory> reach(std::string_view) override { return no(); }
  bool streams_wait() const override { return streams_wait_ && GpuOver::streams_wait(); }

 private:
  static Error no() { return {Code::cuda, "the test does not want it"}; }

  bool streams_wait_;
};

}  // namespace gyre::test
