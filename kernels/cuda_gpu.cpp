#include "kernels/cuda_gpu.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <string>

#include "kernels/load_steps.h"

namespace gyre::kernels {
namespace {

Status said(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // so that no later call reports it
  return Error{Code::cuda, std::string(what) + ": " + cudaGetErrorString(error)};
}

/// What the runtime has no calls for; opened from the driver that is there, so that nothing is linked with it.
struct Driver {
  decltype(&cuStreamWaitValue64) wait = nullptr;
  decltype(&cuStreamWriteValue64) write = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  decltype(&cuCtxPushCurrent) push = nullptr;
  decltype(&cuCtxPopCurrent) pop = nullptr;
};

template <class Function>
Status open(const char* name, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
  if (Status status = said(name, error); !status) return status;
  if (result != cudaDriverEntryPointSuccess || found == nullptr) return Error{Code::cuda, std::string("the driver has no ") + name};
  std::memcpy(&function, &found, sizeof found);
  return {};
}

/// A device's own context, as CUDA's runtime has it.
struct Place {
  Driver driver;
  CUdevice device = 0;
  CUcontext context = nullptr;
};

/// Calls of this thread go there meanwhile; what it had before is as it was, be it nothing.
class On {
 public:
  explicit On(const Place& place) : place_(place) { place_.driver.push(place_.context); }
  ~On() {
    CUcontext ours = nullptr;
    place_.driver.pop(&ours);
  }
  On(const On&) = delete;
  On& operator=(const On&) = delete;

 private:
  const Place& place_;
};

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
  static Status said(const char* what, cudaError_t error) { return kernels::said(what, error); }
  static Status said(const char* what, CUresult result) {
    return result == CUDA_SUCCESS ? Status() : Error{Code::cuda, std::string(what) + ": error " + std::to_string(static_cast<int>(result))};
  }

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
    GYRE_TRY(kernels::open("cuStreamWaitValue64", place_.driver.wait));
    GYRE_TRY(kernels::open("cuStreamWriteValue64", place_.driver.write));
    GYRE_TRY(kernels::open("cuDeviceGetAttribute", place_.driver.attribute));
    GYRE_TRY(kernels::open("cuCtxPushCurrent", place_.driver.push));
    GYRE_TRY(kernels::open("cuCtxPopCurrent", place_.driver.pop));
    decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;
    GYRE_TRY(kernels::open("cuDevicePrimaryCtxRetain", retain));
    GYRE_TRY(kernels::open("cuDevicePrimaryCtxRelease", release_));
    place_.device = device;
    if (const CUresult result = retain(&place_.context, device); result != CUDA_SUCCESS)
      return Error{Code::cuda, "GPU " + std::to_string(device) + " has no context: error " + std::to_string(static_cast<int>(result))};
    const On on(place_);
    GYRE_TRY(load_step_kernels());
    place_.driver.attribute(&waits_, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device);
    GYRE_TRY(said("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&capability_, cudaDevAttrComputeCapabilityMajor, device)));
    return said("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device));
  }
  ~CudaGpu() override {
    if (place_.context != nullptr) release_(place_.device);
  }

  Result<std::unique_ptr<Stream>> open_stream() override {
    auto stream = std::make_unique<CudaStream>(place_);
    GYRE_TRY(stream->open());
    return std::unique_ptr<Stream>(std::move(stream));
  }
  Result<GpuMemory> allocate(size_t bytes) override {
    const On on(place_);
    void* memory = nullptr;
    GYRE_TRY(said("cudaMalloc", cudaMalloc(&memory, bytes)));
    return GpuMemory(static_cast<std::byte*>(memory), [this](std::byte* old) {
      const On there(place_);
      cudaFree(old);
    });
  }
  Result<GpuMemory> allocate_pinned(size_t bytes) override {
    const On on(place_);
    void* memory = nullptr;
    GYRE_TRY(said("cudaHostAlloc", cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped)));
    std::memset(memory, 0, bytes);
    return GpuMemory(static_cast<std::byte*>(memory), [this](std::byte* old) {
      const On there(place_);
      cudaFreeHost(old);
    });
  }
  bool computes(DataType type) const override { return is_integer(type) || size_of(type) > 1 || capability_ >= 9; }
  bool streams_wait() const override { return waits_ != 0; }
  /// A multiprocessor has room for one block at least.
  unsigned resident_blocks() const override { return static_cast<unsigned>(processors_); }

 private:
  Place place_;
  decltype(&cuDevicePrimaryCtxRelease) release_ = nullptr;
  int waits_ = 0, capability_ = 0, processors_ = 1;
};

}  // namespace

Result<std::unique_ptr<Gpu>> open_cuda_gpu(int device) {
  auto gpu = std::make_unique<CudaGpu>();
  GYRE_TRY(gpu->open(device));
  return std::unique_ptr<Gpu>(std::move(gpu));
}

}  // namespace gyre::kernels
