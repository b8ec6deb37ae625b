#include "plugin/nccl/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace gyre::plugin::nccl::cuda {
namespace {

// Of cuda.h, which is not needed for this.
constexpr int success = 0, no_such_device = 101, not_ready = 600;
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
  int (*query_event)(void* event);                                 // cuEventQuery
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
  int (*retain)(void** context, int device);               // cuDevicePrimaryCtxRetain
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
                     find(library, "cuEventRecord", found.record) && find(library, "cuEventQuery", found.query_event) &&
                     find(library, "cuEventDestroy_v2", found.destroy_event) && find(library, "cuStreamWaitEvent", found.wait_on_stream) &&
                     find(library, "cuCtxGetCurrent", found.context) && find(library, "cuCtxPushCurrent_v2", found.push) &&
                     find(library, "cuCtxPopCurrent_v2", found.pop) && find(library, "cuMemcpyAsync", found.copy) &&
                     find(library, "cuMemAlloc_v2", found.allocate) && find(library, "cuMemFree_v2", found.release);
  find(library, "cuDeviceGet", found.get_device);
  find(library, "cuDeviceGetPCIBusId", found.pci_address);
  find(library, "cuStreamGetCtx", found.stream_context);
  find(library, "cuDevicePrimaryCtxRetain", found.retain);
  return whole ? &found : nullptr;
}

Error failed(std::string_view call, int result) { return Error{Code::cuda, fmt::format("{}: CUDA's error {}", call, result)}; }

/// While there is one the thread is in that context; null: it stays where it is. Most are there already, and to ask costs less than to
/// enter.
class Entered {
 public:
  Entered(const Driver& cuda, Context context) : cuda_(cuda), enters_(context != nullptr && !is_current(cuda, context)) {
    if (enters_) result_ = cuda.push(context);
  }
  ~Entered() {
    Context left = nullptr;
    if (enters_ && result_ == success) cuda_.pop(&left);
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  Status status() const { return result_ == success ? Status() : failed("cuCtxPushCurrent", result_); }

 private:
  static bool is_current(const Driver& cuda, Context context) {
    Context current = nullptr;
    return cuda.context(&current) == success && current == context;
  }

  const Driver& cuda_;
  bool enters_;
  int result_ = success;
};

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

Status is_device(int device) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  int handle = 0;
  if (cuda == nullptr || cuda->get_device == nullptr || cuda->get_device(&handle, device) != no_such_device) return {};
  return Error{Code::cuda, fmt::format("CUDA has no device {}", device)};
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

// The legacy stream never is, and CUDA refuses the question while another of its context is.
Result<bool> captures(cudaStream_t stream, Context context) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda == nullptr || stream == nullptr || stream == legacy) return false;
  const Entered there(*cuda, context);
  GYRE_TRY(there.status());
  int state = 0;
  if (const int result = cuda->capturing(stream, &state); result != success) return failed("cuStreamIsCapturing", result);
  return state != 0;
}

Context context() {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  Context current = nullptr;
  return cuda != nullptr && cuda->context(&current) == success ? current : nullptr;
}

// Kept for good: the program has it as long as it has communicators there.
Result<Context> context_of(int device) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda == nullptr) return Context{};
  if (cuda->get_device == nullptr || cuda->retain == nullptr)
    return Error{Code::cuda, "CUDA's driver does not have cuDevicePrimaryCtxRetain"};
  static auto& mutex = *new std::mutex;
  static auto& known = *new std::map<int, Context>;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(device); found != known.end()) return found->second;
  int handle = 0;
  Context made = nullptr;
  if (const int result = cuda->get_device(&handle, device); result != success) return failed("cuDeviceGet", result);
  if (const int result = cuda->retain(&made, handle); result != success) return failed("cuDevicePrimaryCtxRetain", result);
  known.emplace(device, made);
  return made;
}

Status copy(void* to, const void* from, size_t bytes, cudaStream_t stream, Context context) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda == nullptr) return Error{Code::cuda, "a copy of a GPU's memory without CUDA's driver"};
  const Entered there(*cuda, context);
  GYRE_TRY(there.status());
  int result = cuda->copy(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from), bytes, stream);
  if (result == success) result = cuda->synchronize(stream);
  return result == success ? Status() : Error{Code::cuda, fmt::format("cuMemcpyAsync of {} bytes: CUDA's error {}", bytes, result)};
}

// cuMemAlloc refuses to allocate nothing.
Result<void*> allocate(size_t bytes) {
  if (bytes == 0) return static_cast<void*>(nullptr);
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

// An event is of one context, and so is a stream, but those that are every context's.
Status Mark::set(cudaStream_t stream) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda == nullptr || GYRE_TRY(captures(stream, home_))) return {};
  Context there = home_;
  if (stream != nullptr && stream != legacy && stream != per_thread && cuda->stream_context != nullptr) {
    if (cuda->stream_context(stream, &there) != success) there = home_;
  }
  if (event_ != nullptr && context_ != there) cuda->destroy_event(std::exchange(event_, nullptr));
  is_set_ = false;
  const Entered entered(*cuda, there);
  GYRE_TRY(entered.status());
  if (event_ == nullptr && cuda->create_event(&event_, without_timing) != success) event_ = nullptr;
  context_ = there;
  is_set_ = event_ != nullptr && cuda->record(event_, stream) == success;
  if (is_set_) return {};
  const int result = cuda->synchronize(stream);
  if (result == success || (stream == nullptr && there == nullptr)) return {};  // the stream of a thread that has no context is empty
  return failed("neither cuEventRecord nor cuStreamSynchronize", result);
}

Result<bool> Mark::passed() {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda == nullptr || !is_set_) return true;
  const Entered there(*cuda, context_);
  GYRE_TRY(there.status());
  const int result = cuda->query_event(event_);
  if (result != success && result != not_ready) return failed("cuEventQuery", result);
  return result == success;
}

Status Mark::before(cudaStream_t stream) {
  const Driver* cuda = driver.load(std::memory_order_acquire);
  if (cuda == nullptr || !is_set_ || GYRE_TRY(captures(stream, home_))) return {};
  const Entered there(*cuda, home_);
  GYRE_TRY(there.status());
  const int result = cuda->wait_on_stream(stream, event_, 0);
  return result == success ? Status() : failed("cuStreamWaitEvent", result);
}

}  // namespace gyre::plugin::nccl::cuda
