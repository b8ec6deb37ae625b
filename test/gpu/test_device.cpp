// NVIDIA's GPU for the device engine's tests: the first one that there is, which threads share.
#include <cuda_runtime_api.h>

#include <memory>
#include <thread>

#include "kernels/cuda_gpu.h"
#include "test/engine/test_device.h"
#include "test/gpu/must.h"

namespace gyre::test {
namespace {

class Graph final : public TestGraph {
 public:
  explicit Graph(cudaGraph_t graph) : graph_(graph) { must(cudaGraphInstantiate(&instance_, graph, 0)); }
  ~Graph() override {
    cudaGraphExecDestroy(instance_);
    cudaGraphDestroy(graph_);
  }
  void launch(TestStream& on) override { must(cudaGraphLaunch(instance_, static_cast<cudaStream_t>(on.handle()))); }

 private:
  cudaGraph_t graph_;
  cudaGraphExec_t instance_ = nullptr;
};

class Stream final : public TestStream {
 public:
  Stream() { must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  explicit Stream(uintptr_t number) : stream_(reinterpret_cast<cudaStream_t>(number)), is_own_(false) {}  // NOLINT: CUDA's handles
  ~Stream() override {
    if (is_own_) cudaStreamDestroy(stream_);
  }

  void* handle() override { return stream_; }
  void add(std::function<void()> call) override {
    auto* kept = new std::function<void()>(std::move(call));
    must(cudaLaunchHostFunc(
        stream_,
        [](void* given) {
          const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(given));
          (*own)();
        },
        kept));
  }
  void launch(kernels::StepKernel kernel) override {
    kernels::StepArgs nothing{};
    void* list[] = {&nothing};
    must(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(kernels::step_threads), list, 0, stream_));
  }
  void copy(void* to, const void* from, size_t bytes) override { must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_)); }
  // As PyTorch has it where other threads call CUDA meanwhile.
  void begin_capture() override { must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal)); }
  std::unique_ptr<TestGraph> end_capture() override {
    cudaGraph_t graph = nullptr;
    must(cudaStreamEndCapture(stream_, &graph));
    return std::make_unique<Graph>(graph);
  }
  bool done_within(std::chrono::milliseconds limit) override {
    const auto until = std::chrono::steady_clock::now() + limit;
    for (;;) {
      const cudaError_t state = cudaStreamQuery(stream_);
      if (state == cudaSuccess) return true;
      cudaGetLastError();  // so that no other call reports it
      if (state != cudaErrorNotReady) must(state);
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
  }

 private:
  cudaStream_t stream_ = nullptr;
  bool is_own_ = true;
};

class Device final : public TestDevice {
 public:
  explicit Device(int number) {
    must(cudaSetDevice(number));  // of the thread's own calls
    gpu_ = must(kernels::open_cuda_gpu(number));
  }
  kernels::Gpu& gpu() override { return *gpu_; }
  std::unique_ptr<TestStream> open_stream() override { return std::make_unique<Stream>(); }
  std::unique_ptr<TestStream> stream_of(uintptr_t handle) override { return std::make_unique<Stream>(handle); }

 private:
  std::unique_ptr<kernels::Gpu> gpu_;
};

}  // namespace

std::unique_ptr<TestDevice> TestDevice::open(int number) {
  int devices = 0;
  must(cudaGetDeviceCount(&devices));
  return std::make_unique<Device>(number % devices);
}
// CUDA has eight hardware queues for a process (CUDA_DEVICE_MAX_CONNECTIONS): with more ranks it hung.
int TestDevice::most_ranks() { return 4; }

}  // namespace gyre::test
