// The device engine behind OnGpu.
#pragma once
#include <utility>

#include "engine/device_communicator.h"
#include "plugin/nccl/on_gpu.h"

namespace gyre::plugin::nccl {

class DeviceOnGpu final : public OnGpu {
 public:
  /// Of a GPU that outlives it.
  static MakeOnGpu on(kernels::Gpu& gpu) {
    return [&gpu](std::unique_ptr<engine::Communicator> ranks) -> Result<std::unique_ptr<OnGpu>> {
      std::unique_ptr<DeviceOnGpu> made(new DeviceOnGpu);
      made->device_ = GYRE_TRY(engine::DeviceCommunicator::create(std::move(ranks), gpu));
      return std::unique_ptr<OnGpu>(std::move(made));
    };
  }

  Status enqueue(const engine::Call& call, const void* input, void* output, cudaStream_t stream) override {
    return device_->enqueue(call, input, output, stream);
  }
  Status why_not(const engine::Call& call) override { return device_->why_not(call); }
  Status status() override { return device_->status(); }
  const Error* failure() const override { return device_->failure(); }
  Status finish(const std::function<void()>& meanwhile) override { return device_->finish(meanwhile); }
  bool idle() override { return device_->idle(); }
  bool in_graphs() override { return device_->in_graphs(); }
  void abort(std::string_view why) override { device_->abort(why); }

 private:
  std::unique_ptr<engine::DeviceCommunicator> device_;
};

}  // namespace gyre::plugin::nccl
