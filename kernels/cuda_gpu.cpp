#include "kernels/cuda_gpu.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels/cuda_place.h"

namespace gyre::kernels {
namespace {

class CudaStream final : public Stream {
 public:
  explicit CudaStream(const Place& place) : place_(place) {}
  ~CudaStream() override {
    const On on(place_);
    if (stream_ != nullptr) {
      cudaStreamSynchronize(stream_);
      cudaStreamDestroy(stream_);
    }
    if (event_ != nullptr) cudaEventDestroy(event_);
  }

  Status open() {
    const On on(place_);
    int least = 0, highest = 0;
    GYRE_TRY(said("cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange(&least, &highest)));
    GYRE_TRY(said("cudaStreamCreateWithPriority", cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest)));
    return said("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }

  Status wait(const uint64_t* flag, uint64_t value) override {
    const On on(place_);
    return said("cuStreamWaitValue64", place_.driver.wait(stream_, reinterpret_cast<CUdeviceptr>(flag), value, CU_STREAM_WAIT_VALUE_GEQ));
  }
  Status raise(uint64_t* flag, uint64_t value) override {
    const On on(place_);
    return said("cuStreamWriteValue64",
                place_.driver.write(stream_, reinterpret_cast<CUdeviceptr>(flag), value, CU_STREAM_WRITE_VALUE_DEFAULT));
  }
  Status launch(StepKernel kernel, const StepArgs& args, unsigned blocks) override {
    return run(reinterpret_cast<const void*>(kernel), args, blocks);
  }
  Status launch(StayKernel kernel, const StayArgs& args, unsigned blocks) override {
    return run(reinterpret_cast<const void*>(kernel), args, blocks);
  }

  Result<bool> done() override {
    const On on(place_);
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state != cudaErrorNotReady) return GYRE_TRY(said("the GPU", state)), true;
    cudaGetLastError();  // so that no later call reports it
    return false;
  }

  // What is captured is not run now, and the plan's flags are not made to be run again.
  Status refuse(void* user) override {
    const On on(place_);
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    GYRE_TRY(said("cudaStreamIsCapturing", cudaStreamIsCapturing(static_cast<cudaStream_t>(user), &capture)));
    if (capture == cudaStreamCaptureStatusNone) return {};
    return Error{Code::invalid_usage, "a collective of gyre's can't be captured in a CUDA graph yet"};
  }
  Status follow(void* user) override { return order(static_cast<cudaStream_t>(user), stream_); }
  Status lead(void* user) override { return order(stream_, static_cast<cudaStream_t>(user)); }

 private:
  template <class Args>
  Status run(const void* kernel, Args args, unsigned blocks) {
    const On on(place_);
    void* list[] = {&args};
    return said("cudaLaunchKernel", cudaLaunchKernel(kernel, dim3(blocks), dim3(step_threads), list, 0, stream_));
  }
  // The event may be recorded anew as soon as it is waited for.
  Status order(cudaStream_t first, cudaStream_t then) {
    const On on(place_);
    GYRE_TRY(said("cudaEventRecord", cudaEventRecord(event_, first)));
    return said("cudaStreamWaitEvent", cudaStreamWaitEvent(then, event_, 0));
  }

  const Place& place_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

class CudaGpu final : public Gpu {
 public:
  Status open(int device) {
    place_ = GYRE_TRY(Place::of(device));
    const On on(*place_);
    GYRE_TRY(said("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&capability_, cudaDevAttrComputeCapabilityMajor, device)));
    return said("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device));
  }

  Result<std::unique_ptr<Stream>> open_stream() override {
    auto stream = std::make_unique<CudaStream>(*place_);
    GYRE_TRY(stream->open());
    return std::unique_ptr<Stream>(std::move(stream));
  }
  Result<GpuMemory> allocate(size_t bytes) override { return place_->allocate(bytes); }
  Result<GpuMemory> allocate_pinned(size_t bytes) override { return place_->allocate_pinned(bytes); }
  Result<ReachableMemory> allocate_reachable(size_t bytes) override { return place_->allocate_reachable(bytes); }
  Result<std::byte*> reach(std::string_view handle) override { return place_->reach(handle); }
  bool computes(DataType type) const override { return is_integer(type) || size_of(type) > 1 || capability_ >= 9; }
  bool streams_wait() const override { return place_->streams_wait; }
  /// A multiprocessor has room for one block at least.
  unsigned resident_blocks() const override { return static_cast<unsigned>(processors_); }

 private:
  Place* place_ = nullptr;
  int capability_ = 0, processors_ = 1;
};

}  // namespace

Result<std::unique_ptr<Gpu>> open_cuda_gpu(int device) {
  auto gpu = std::make_unique<CudaGpu>();
  GYRE_TRY(gpu->open(device));
  return std::unique_ptr<Gpu>(std::move(gpu));
}

}  // namespace gyre::kernels
