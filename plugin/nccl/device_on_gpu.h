// The device engine behind OnGpu.
#pragma once
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "engine/device_communicator.h"
#include "engine/device_transfers.h"
#include "plugin/nccl/on_gpu.h"

namespace gyre::plugin::nccl {

class DeviceOnGpu final : public OnGpu {
 public:
  /// Of a GPU that outlives it.
  static MakeOnGpu on(kernels::Gpu& gpu) {
    return [&gpu](std::unique_ptr<engine::Communicator> ranks) -> Result<std::unique_ptr<OnGpu>> {
      std::unique_ptr<DeviceOnGpu> made(new DeviceOnGpu(gpu));
      made->device_ = GYRE_TRY(engine::DeviceCommunicator::create(std::move(ranks), gpu));
      return std::unique_ptr<OnGpu>(std::move(made));
    };
  }

  Status enqueue(const engine::Call& call, const void* input, void* output, cudaStream_t stream) override {
    return device_->enqueue(call, input, output, stream);
  }
  Status why_not(const engine::Call& call) override { return device_->why_not(call); }
  Status status() override {
    GYRE_TRY(device_->status());
    const Error* const carried = transfers_.failure();
    return carried != nullptr ? Status(*carried) : Status();
  }
  const Error* failure() const override {
    const Error* const known = device_->failure();
    return known != nullptr ? known : transfers_.failure();
  }
  Status finish(const std::function<Status()>& meanwhile) override {
    for (; !transfers_.idle(); std::this_thread::sleep_for(nap)) {
      GYRE_TRY(status());
      GYRE_TRY(meanwhile());
    }
    return device_->finish(meanwhile);
  }
  size_t most_carried() const override { return gpu_.streams_wait() ? engine::DeviceTransfers::most : 0; }
  bool make_room(const std::vector<engine::Transfer>& transfers) override { return transfers_.make_room(transfers); }
  Status carry(engine::Communicator& by, const std::vector<engine::Transfer>& transfers, cudaStream_t stream) override {
    return transfers_.give(by, transfers, stream);
  }
  // Streams that a collective's error holds don't come to what is to be sent.
  Result<bool> all_carried() override {
    if (transfers_.carried()) return true;
    GYRE_TRY(status());
    return false;
  }
  bool idle() override { return device_->idle() && transfers_.idle(); }
  bool in_graphs() override { return device_->in_graphs(); }
  void abort(std::string_view why) override {
    device_->abort(why);
    transfers_.let_go();
  }

 private:
  static constexpr std::chrono::microseconds nap{50};

  explicit DeviceOnGpu(kernels::Gpu& gpu) : gpu_(gpu), transfers_(gpu) {}

  kernels::Gpu& gpu_;
  std::unique_ptr<engine::DeviceCommunicator> device_;
  engine::DeviceTransfers transfers_;
};

}  // namespace gyre::plugin::nccl
