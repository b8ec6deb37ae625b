// A GPU, and its streams, that are another one's but for what a test wants to see or to have otherwise.
#pragma once
#include <memory>
#include <utility>

#include "kernels/gpu.h"

namespace gyre::test {

class StreamOver : public kernels::Stream {
 public:
  explicit StreamOver(std::unique_ptr<kernels::Stream> stream) : stream_(std::move(stream)) {}

  Status wait(const uint64_t* flag, uint64_t value) override { return stream_->wait(flag, value); }
  Status raise(uint64_t* flag, uint64_t value) override { return stream_->raise(flag, value); }
  Status launch(kernels::StepKernel kernel, const kernels::StepArgs& args, unsigned blocks) override {
    return stream_->launch(kernel, args, blocks);
  }
  Status launch(kernels::StayKernel kernel, const kernels::StayArgs& args, unsigned blocks) override {
    return stream_->launch(kernel, args, blocks);
  }
  Result<bool> done() override { return stream_->done(); }
  Result<uint64_t> capture_of(void* user) override { return stream_->capture_of(user); }
  Status capture(void* user, kernels::StayKernel kernel, const kernels::StayArgs& args, unsigned blocks,
                 std::shared_ptr<void> kept) override {
    return stream_->capture(user, kernel, args, blocks, std::move(kept));
  }
  Status follow(void* user) override { return stream_->follow(user); }
  Status lead(void* user) override { return stream_->lead(user); }

 private:
  std::unique_ptr<kernels::Stream> stream_;
};

class GpuOver : public kernels::Gpu {
 public:
  explicit GpuOver(kernels::Gpu& gpu) : gpu_(gpu) {}

  Result<std::unique_ptr<kernels::Stream>> open_stream() override { return gpu_.open_stream(); }
  Result<kernels::GpuMemory> allocate(size_t bytes) override { return gpu_.allocate(bytes); }
  Result<kernels::GpuMemory> allocate_pinned(size_t bytes) override { return gpu_.allocate_pinned(bytes); }
  Result<kernels::ReachableMemory> allocate_reachable(size_t bytes) override { return gpu_.allocate_reachable(bytes); }
  Result<kernels::ReachedMemory> reach(std::string_view handle) override { return gpu_.reach(handle); }
  bool computes(DataType type) const override { return gpu_.computes(type); }
  bool streams_wait() const override { return gpu_.streams_wait(); }
  unsigned resident_blocks() const override { return gpu_.resident_blocks(); }

 private:
  kernels::Gpu& gpu_;
};

/// Its streams are of that type, made of a stream of the GPU's.
template <class StreamType>
class GpuWith final : public GpuOver {
 public:
  using GpuOver::GpuOver;

  Result<std::unique_ptr<kernels::Stream>> open_stream() override {
    return std::unique_ptr<kernels::Stream>(std::make_unique<StreamType>(GYRE_TRY(GpuOver::open_stream())));
  }
};

}  // namespace gyre::test
