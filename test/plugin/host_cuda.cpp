#include "test/plugin/host_cuda.h"

#include <cstring>
#include <map>
#include <mutex>

#include "plugin/nccl/cuda_driver.h"
#include "plugin/nccl/device_on_gpu.h"

namespace gyre::test {
namespace {

std::mutex mutex;
std::map<const std::byte*, size_t> memory;  // of the GPU's
std::atomic<bool> there{false}, broken{false};
std::string address;  // its PCI address, as CUDA's driver says

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
void break_host_gpu(bool breaks) { broken = breaks; }
void place_host_gpu(std::string at) { address = std::move(at); }

}  // namespace gyre::test

namespace gyre::plugin::nccl {
namespace cuda {

void look(const Config& /*config*/) {}
void look() {}
bool present() { return test::there; }
int current_device() { return 0; }
std::string pci_address(int /*device*/) { return test::address; }
bool on_gpu(const void* at) { return test::there && test::known(at); }
bool reaches(const void* at) { return on_gpu(at); }
Status wait_for(cudaStream_t stream) {
  if (test::there && stream != nullptr && !reinterpret_cast<simt::HostStream*>(stream)->done_within(std::chrono::seconds(60)))
    return Error{Code::cuda, "a stream does not end"};
  return {};
}
bool captures(cudaStream_t /*stream*/) { return false; }
Context context() { return nullptr; }
Status copy(void* to, const void* from, size_t bytes, cudaStream_t stream, Context /*context*/) {
  GYRE_TRY(wait_for(stream));
  std::memcpy(to, from, bytes);
  return {};
}
Result<void*> allocate(size_t /*bytes*/) { return Error{Code::cuda, "no memory"}; }
Status release(void* /*at*/) { return {}; }

Mark::~Mark() = default;
void Mark::set(cudaStream_t /*stream*/) {}
Status Mark::wait() { return {}; }

}  // namespace cuda

Result<MakeOnGpu> use_gpu(int /*device*/) {
  static simt::HostGpu gpu;
  if (test::broken) return Error{Code::cuda, "the GPU has fallen off the bus"};
  return DeviceOnGpu::on(gpu);
}

}  // namespace gyre::plugin::nccl
