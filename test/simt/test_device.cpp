#include "test/engine/test_device.h"

#include <cstring>
#include <tuple>
#include <utility>

#include "test/simt/gpu.h"

namespace gyre::test {
namespace {

constexpr simt::Grid grid{2, 32, 0};

class Graph final : public TestGraph {
 public:
  explicit Graph(std::shared_ptr<simt::HostGraph> graph) : graph_(std::move(graph)) {}
  void launch(TestStream& on) override { simt::HostGraph::launch(graph_, *static_cast<simt::HostStream*>(on.handle())); }

 private:
  std::shared_ptr<simt::HostGraph> graph_;
};

class Stream final : public TestStream {
 public:
  explicit Stream(uintptr_t number = 0)
      : own_(number == 0 ? std::make_unique<simt::HostStream>(1024, grid) : nullptr),
        stream_(number == 0 ? *own_ : simt::HostStream::of(reinterpret_cast<void*>(number))) {}  // NOLINT(performance-no-int-to-ptr)

  void* handle() override { return &stream_; }
  void launch(kernels::StepKernel kernel) override { std::ignore = stream_.launch(kernel, kernels::StepArgs{}, 1); }
  void add(std::function<void()> call) override { stream_.add(std::move(call)); }
  void copy(void* to, const void* from, size_t bytes) override {
    stream_.add([=] {
      if (bytes != 0) std::memcpy(to, from, bytes);
    });
  }
  void begin_capture() override { stream_.begin_capture(); }
  std::unique_ptr<TestGraph> end_capture() override { return std::make_unique<Graph>(stream_.end_capture()); }
  bool done_within(std::chrono::milliseconds limit) override { return stream_.done_within(limit); }

 private:
  std::unique_ptr<simt::HostStream> own_;
  simt::HostStream& stream_;
};

class Device final : public TestDevice {
 public:
  kernels::Gpu& gpu() override { return gpu_; }
  std::unique_ptr<TestStream> open_stream() override { return std::make_unique<Stream>(); }
  std::unique_ptr<TestStream> stream_of(uintptr_t handle) override { return std::make_unique<Stream>(handle); }

 private:
  simt::HostGpu gpu_{grid};
};

}  // namespace

std::unique_ptr<TestDevice> TestDevice::open(int) { return std::make_unique<Device>(); }

int TestDevice::most_ranks() { return 64; }

}  // namespace gyre::test
