// A GPU whose memory no other rank reaches, and that reaches none: what is between GPUs that have no way to each other.
#pragma once
#include "kernels/gpu.h"

namespace gyre::test {

class UnreachableGpu final : public kernels::Gpu {
 public:
  /// `streams_wait`: where false, they have no operations on memory.
  explicit UnreachableGpu(kernels::Gpu& gpu, bool streams_wait = true) : gpu_(gpu), streams_wait_(streams_wait) {}

  Result<std::unique_ptr<kernels::Stream>> open_stream() override { return gpu_.open_stream(); }
  Result<kernels::GpuMemory> allocate(size_t bytes) override { return gpu_.allocate(bytes); }
  Result<kernels::GpuMemory> allocate_pinned(size_t bytes) override { return gpu_.allocate_pinned(bytes); }
  Result<kernels::ReachableMemory> allocate_reachable(size_t) override { return no(); }
  Result<std::byte*> reach(std::string_view) override { return no(); }
  bool computes(DataType type) const override { return gpu_.computes(type); }
  bool streams_wait() const override { return streams_wait_ && gpu_.streams_wait(); }
  unsigned resident_blocks() const override { return gpu_.resident_blocks(); }

 private:
  static Error no() { return {Code::cuda, "the test does not want it"}; }

  kernels::Gpu& gpu_;
  bool streams_wait_;
};

}  // namespace gyre::test
