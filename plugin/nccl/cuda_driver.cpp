#include "plugin/nccl/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

namespace gyre::plugin::nccl::cuda {
namespace {

// Of cuda.h, which is not needed for this.
constexpr int success = 0;
constexpr int memory_type = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int is_managed = 8;   // CU_POINTER_ATTRIBUTE_IS_MANAGED
constexpr unsigned device_memory = 2;
constexpr unsigned without_timing = 2;  // CU_EVENT_DISABLE_TIMING

struct Driver {
  int (*attribute)(void* data, int attribute, uintptr_t pointer);  // cuPointerGetAttribute
  int (*synchronize)(cudaStream_t);                                // cuStreamSynchronize
  int (*device)(int* device);                                      // cuCtxGetDevice
  int (*capturing)(cudaStream_t, int* state);                      // cuStreamIsCapturing
  int (*create_event)(void** event, unsigned flags);               // cuEventCreate
  int (*record)(void* event, cudaStream_t);                        // cuEventRecord
  int (*wait_event)(void* event);                                  // cuEventSynchronize
  int (*destroy_event)(void* event);                               // cuEventDestroy_v2
  int (*wait_on_stream)(cudaStream_t, void* event, unsigned);      // cuStreamWaitEvent
  int (*context)(void** context);                                  // cuCtxGetCurrent
  int (*push)(void* context);                                      // cuCtxPushCurrent_v2
  int (*pop)(void** context);                                      // cuCtxPopCurrent_v2
  int (*copy)(uintptr_t, uintptr_t, size_t, cudaStream_t);         // cuMemcpyAsync
  int (*allocate)(uintptr_t*, size_t);                             // cuMemAlloc_v2
  int (*release)(uintptr_t);                                       // cuMemFree_v2
  // Null where the driver has none.
  int (*get_device)(int* device, int number);              // cuDeviceGet
  int (*pci_address)(char* text, int length, int device);  // cuDeviceGetPCIBusId
  int (*stream_context)(cudaStream_t, void** context);     // cuStreamGetCtx
};
std::atomic<const Driver*> driver{nullptr};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  void* found = ::dlsym(library, name);
  std::memcpy(&function, &found, sizeof found);
  return found != nullptr;
}

const Driver* open() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  static Driver found;
  const bool whole = library != nullptr && find(library, "cuPointerGetAttribute", found.attribute) &&
                     find(library, "cuStreamSynchronize", found.synchronize) && find(library, "cuCtxGetDevice", found.device) &&
                     find(library, "cuStreamIsCapturing", found.capturing) && find(library, "cuEventCreate", found.create_event) &&
                     find(library, "cuEventRecord", found.record) && find(library, "cuEventSynchronize", found.wait_event) &&
                     find(library, "cuEventDestroy_v2", found.destroy_event) && find(library, "cuStreamWaitEvent", found.wait_on_stream) &&
                     find(library, "cuCtxGetCurrent", found.context) && find(library, "cuCtxPushCurrent_v2", found.push) &&
                     find(library, "cuCtxPopCurrent_v2", found.pop) && find(library, "cuMemcpyAsync", found.copy) &&
                     find(library, "cuMemAlloc_v2", found.allocate) && find(library, "cuMemFree_v2", found.release);
  find(library, "cuDeviceGet", found.get_device);
  find(library, "cuDeviceGetPCIBusId", found.pci_address);
  find(library, "cuStreamGetCtx", found.stream_context);
  return whole ? &found : nullptr;
}

}  // namespace

void look(const Config& config) {
  if (*config.device == "host")
    driver = nullptr;
  else
    look();
}

void look() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (!present()) driver = open();
}

bool present() { return driver.load(std::memory_order_acquire) != nullptr; }

int current_device() {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  int device = 0;
  return cuda != nullptr && cuda->device(&device) == success ? device : 0;
}

std::string pci_address(int device) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda == nullptr || cuda->get_device == nullptr || cuda->pci_address == nullptr) return {};
  std::array<char, 32> text{};
  int handle = 0;
  const bool known = cuda->get_device(&handle, device) == success && cuda->pci_address(text.data(), text.size() - 1, handle) == success;
  return known ? text.data() : "";
}

bool on_gpu(const void* memory) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda == nullptr || memory == nullptr) return false;
  const auto pointer = reinterpret_cast<uintptr_t>(memory);
  unsigned type = 0, managed = 0;
  if (cuda->attribute(&type, memory_type, pointer) != success || type != device_memory) return false;
  return cuda->attribute(&managed, is_managed, pointer) != success || managed == 0;
}

bool reaches(const void* memory) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  unsigned type = 0;
  return cuda != nullptr && memory != nullptr && cuda->attribute(&type, memory_type, reinterpret_cast<uintptr_t>(memory)) == success;
}

Status wait_for(cudaStream_t stream) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda == nullptr) return {};
  const int result = cuda->synchronize(stream);
  if (result == success || stream == nullptr) return {};  // the default stream of a thread that has no context is empty
  return Error{Code::cuda, fmt::format("cuStreamSynchronize: CUDA's error {}", result)};
}

bool captures(cudaStream_t stream) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  int state = 0;
  return cuda != nullptr && stream != nullptr && (cuda->capturing(stream, &state) != success || state != 0);
}

Context context() {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  Context current = nullptr;
  return cuda != nullptr && cuda->context(&current) == success ? current : nullptr;
}

Status copy(void* to, const void* from, size_t bytes, cudaStream_t stream, Context context) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda == nullptr) return Error{Code::cuda, "a copy of a GPU's memory without CUDA's driver"};
  cuda->push(context);
  int result = cuda->copy(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from), bytes, stream);
  if (result == success) result = cuda->synchronize(stream);
  cuda->pop(&context);
  return result == success ? Status() : Error{Code::cuda, fmt::format("cuMemcpyAsync of {} bytes: CUDA's error {}", bytes, result)};
}

Result<void*> allocate(size_t bytes) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  uintptr_t memory = 0;
  const int result = cuda == nullptr ? -1 : cuda->allocate(&memory, bytes);
  if (result != success) return Error{Code::cuda, fmt::format("cuMemAlloc of {} bytes: CUDA's error {}", bytes, result)};
  return reinterpret_cast<void*>(memory);  // NOLINT(performance-no-int-to-ptr): CUDA's type
}

Status release(void* memory) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  const int result = cuda == nullptr ? -1 : cuda->release(reinterpret_cast<uintptr_t>(memory));
  return result == success ? Status() : Error{Code::cuda, fmt::format("cuMemFree of {}: CUDA's error {}", memory, result)};
}

Mark::~Mark() {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda != nullptr && event_ != nullptr) cuda->destroy_event(event_);
}

// An event is of one device, and so is a stream, which need not be the thread's.
void Mark::set(cudaStream_t stream) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda == nullptr || captures(stream)) return;
  Context there = context();
  if (stream != nullptr && cuda->stream_context != nullptr) cuda->stream_context(stream, &there);
  if (event_ != nullptr && context_ != there) cuda->destroy_event(std::exchange(event_, nullptr));
  const bool entered = there != nullptr && cuda->push(there) == success;
  if (event_ == nullptr && cuda->create_event(&event_, without_timing) != success) event_ = nullptr;
  context_ = there;
  is_set_ = event_ != nullptr && cuda->record(event_, stream) == success;
  if (!is_set_) cuda->synchronize(stream);
  if (entered) cuda->pop(&there);
}

Status Mark::wait() {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda == nullptr || !is_set_) return {};
  const int result = cuda->wait_event(event_);
  if (result != success) return Error{Code::cuda, fmt::format("cuEventSynchronize: CUDA's error {}", result)};
  is_set_ = false;
  return {};
}

Status Mark::before(cudaStream_t stream) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda == nullptr || !is_set_ || captures(stream)) return {};
  const int result = cuda->wait_on_stream(stream, event_, 0);
  return result == success ? Status() : Error{Code::cuda, fmt::format("cuStreamWaitEvent: CUDA's error {}", result)};
}

}  // namespace gyre::plugin::nccl::cuda
