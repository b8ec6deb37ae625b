#include "test/engine/test_device.h"

#include <cstring>
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
  void* handle() override { return &stream_; }
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
  simt::HostStream stream_{1024, grid};
};

class Device final : public TestDevice {
 public:
  kernels::Gpu& gpu() override { return gpu_; }
  std::unique_ptr<TestStream> open_stream() override { return std::make_unique<Stream>(); }

 private:
  simt::HostGpu gpu_{grid};
};

}  // namespace

std::unique_ptr<TestDevice> TestDevice::open(int) { return std::make_unique<Device>(); }

int TestDevice::most_ranks() { return 64; }

}  // namespace gyre::test
