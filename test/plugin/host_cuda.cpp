#include "test/plugin/host_cuda.h"

#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "plugin/nccl/cuda_driver.h"
#include "plugin/nccl/device_on_gpu.h"
#include "test/engine/gpu_over.h"

namespace gyre::test {
namespace {

std::mutex mutex;
std::map<const std::byte*, size_t> memory;  // of the GPU's
std::atomic<bool> there{false};
std::atomic<int> broken{no_gpu}, full{no_gpu}, used{0}, marks{0};
std::atomic<size_t> longest_pinned{SIZE_MAX};
std::set<cudaStream_t> captured, failing;
std::string address;  // its PCI address, as CUDA's driver says

class LimitedGpu final : public GpuOver {
 public:
  using GpuOver::GpuOver;
  Result<kernels::GpuMemory> allocate_pinned(size_t bytes) override {
    if (bytes > longest_pinned) return Error{Code::cuda, "no pinned memory"};
    return GpuOver::allocate_pinned(bytes);
  }
};

bool known(const void* at) {
  const std::lock_guard lock(mutex);
  const auto* byte = static_cast<const std::byte*>(at);
  const auto next = memory.upper_bound(byte);
  return next != memory.begin() && byte < std::prev(next)->first + std::prev(next)->second;
}

}  // namespace

HostCudaMemory::HostCudaMemory(size_t bytes) : bytes_(std::max<size_t>(bytes, 1)) {
  const std::lock_guard lock(mutex);
  memory.emplace(bytes_.data(), bytes_.size());
}
HostCudaMemory::~HostCudaMemory() {
  const std::lock_guard lock(mutex);
  memory.erase(bytes_.data());
}

void have_host_cuda(bool has) { there = has; }
void break_host_gpu(int device) { broken = device; }
void fill_host_gpu(int device) { full = device; }
void limit_host_pinned(size_t bytes) { longest_pinned = bytes; }
int host_gpus_used() { return used; }
int host_marks_used() { return marks; }
void capture_host_stream(cudaStream_t stream, bool begins) {
  const std::lock_guard lock(mutex);
  if (begins)
    captured.insert(stream);
  else
    captured.erase(stream);
}
void break_host_stream(cudaStream_t stream, bool breaks) {
  const std::lock_guard lock(mutex);
  if (breaks)
    failing.insert(stream);
  else
    failing.erase(stream);
}
void place_host_gpu(std::string at) { address = std::move(at); }

}  // namespace gyre::test

namespace gyre::plugin::nccl {
namespace cuda {

void look(const Config& /*config*/) {}
void look() {}
bool present() { return test::there; }
int current_device() { return 0; }
Status is_device(int device) { return device != test::no_device ? Status() : Error{Code::cuda, "there is none"}; }
std::string pci_address(int /*device*/) { return test::address; }
bool on_gpu(const void* at) { return test::there && test::known(at); }
bool reaches(const void* at) { return on_gpu(at); }
Result<bool> captures(cudaStream_t stream, Context /*context*/) {
  {
    const std::lock_guard lock(test::mutex);
    if (test::failing.contains(stream)) return Error{Code::cuda, "the stream has failed"};
    if (test::captured.contains(stream)) return true;
  }
  return test::there && stream != nullptr && simt::HostStream::of(stream).is_captured();
}
Context context() { return nullptr; }
Result<Context> context_of(int /*device*/) { return Context{}; }
Status copy(void* to, const void* from, size_t bytes, cudaStream_t stream, Context /*context*/) {
  if (test::there && stream != nullptr && !simt::HostStream::of(stream).done_within(std::chrono::seconds(60)))
    return Error{Code::cuda, "a stream does not end"};
  std::memcpy(to, from, bytes);
  return {};
}
Result<void*> allocate(size_t /*bytes*/) { return Error{Code::cuda, "no memory"}; }
Status release(void* /*at*/) { return {}; }

// An event is a flag, which outlives the streams that it is given to.
namespace {
using Event = std::shared_ptr<std::atomic<bool>>;
Event& event_of(void* event) { return *static_cast<Event*>(event); }
}  // namespace

Mark::~Mark() { delete static_cast<Event*>(event_); }
Status Mark::set(cudaStream_t stream) {
  ++test::marks;
  if (!test::there || stream == nullptr || GYRE_TRY(captures(stream, home_))) return {};
  is_set_ = true;
  if (event_ == nullptr) event_ = new Event;
  const auto flag = event_of(event_) = std::make_shared<std::atomic<bool>>(false);
  simt::HostStream::of(stream).add([flag] { *flag = true; });
  return {};
}
Result<bool> Mark::passed() { return !is_set_ || *event_of(event_); }
Status Mark::before(cudaStream_t stream) {
  ++test::marks;
  if (!is_set_ || stream == nullptr || GYRE_TRY(captures(stream, home_))) return {};
  simt::HostStream::of(stream).add([flag = event_of(event_)] {
    while (!*flag) std::this_thread::yield();
  });
  return {};
}

}  // namespace cuda

Result<MakeOnGpu> use_gpu(int device) {
  static auto& gpu = *new test::LimitedGpu(*new simt::HostGpu);  // communicators that nobody has destroyed end with the process
  ++test::used;
  if (test::broken == device || test::broken == test::every_gpu) return Error{Code::cuda, "the GPU has fallen off the bus"};
  if (test::full == device) {
    return MakeOnGpu([](auto) -> Result<std::unique_ptr<OnGpu>> { return Error{Code::cuda, "the GPU's memory is full"}; });
  }
  return DeviceOnGpu::on(gpu);
}

}  // namespace gyre::plugin::nccl
