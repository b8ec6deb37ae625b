#include "test/engine/test_device.h"

#include <cstring>

#include "test/simt/gpu.h"

namespace gyre::test {
namespace {

constexpr simt::Grid grid{2, 32, 0};

class Stream final : public TestStream {
 public:
  void* handle() override { return &stream_; }
  void add(std::function<void()> call) override { stream_.add(std::move(call)); }
  void copy(void* to, const void* from, size_t bytes) override {
    stream_.add([=] {
      if (bytes != 0) std::memcpy(to, from, bytes);
    });
  }
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
