// A GPU, and its streams, that are another one's but for what a test wants to see or to have otherwise.
#pragma once
#include <memory>
#include <utility>

#include "kernels/gpu.h"

namespace gyre::test {

class StreamOver : public kernels::Stream {
 public:
  explicit StreamOver(std::unique_ptr<kernels::Stream> stream) : stream_(std::move(stream)) {}

  Status wait(const uint64_t* flag, uint64_t value) override { return below().wait(flag, value); }
  Status raise(uint64_t* flag, uint64_t value) override { return below().raise(flag, value); }
  Status launch(kernels::StepKernel kernel, const kernels::StepArgs& args, unsigned blocks) override {
    return below().launch(kernel, args, blocks);
  }
  Status launch(kernels::StayKernel kernel, const kernels::StayArgs& args, unsigned blocks) override {
    return below().launch(kernel, args, blocks);
  }
  Status launch(kernels::PacketKernel kernel, const kernels::PacketArgs& args, unsigned blocks) override {
    return below().launch(kernel, args, blocks);
  }
  Result<bool> done() override { return below().done(); }
  Result<uint64_t> capture_of(void* user) override { return below().capture_of(user); }
  Status capture(void* user, kernels::StayKernel kernel, const kernels::StayArgs& args, unsigned blocks,
                 std::shared_ptr<void> kept) override {
    return below().capture(user, kernel, args, blocks, std::move(kept));
  }
  Status follow(void* user) override { return below().follow(user); }
  Status lead(void* user) override { return below().lead(user); }

 private:
  virtual void called() {}
  kernels::Stream& below() { return called(), *stream_; }

  std::unique_ptr<kernels::Stream> stream_;
};

class GpuOver : public kernels::Gpu {
 public:
  explicit GpuOver(kernels::Gpu& gpu) : gpu_(gpu) {}

  Result<std::unique_ptr<kernels::Stream>> open_stream() override { return below().open_stream(); }
  Result<kernels::GpuMemory> allocate(size_t bytes) override { return below().allocate(bytes); }
  Result<kernels::GpuMemory> allocate_pinned(size_t bytes) override { return below().allocate_pinned(bytes); }
  Result<kernels::ReachableMemory> allocate_reachable(size_t bytes) override { return below().allocate_reachable(bytes); }
  Result<kernels::ReachedMemory> reach(std::string_view handle) override { return below().reach(handle); }
  Result<kernels::ExposedMemory> allocate_exposed(size_t bytes) override { return below().allocate_exposed(bytes); }
  bool computes(DataType type) const override { return gpu_.computes(type); }
  bool streams_wait() const override { return gpu_.streams_wait(); }
  unsigned resident_blocks() const override { return gpu_.resident_blocks(); }

 private:
  virtual void called() {}
  kernels::Gpu& below() { return called(), gpu_; }

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
