#include "kernels/cuda_place.h"

#include <cstring>
#include <memory>

#include "base/log.h"
#include "kernels/load_steps.h"
#include "kernels/mem.h"
#include "kernels/table.h"

namespace gyre::kernels {
namespace {

template <class Function>
Status open(const char* name, Function& function) {
  void* const found = GYRE_TRY(driver_function(name));
  std::memcpy(&function, &found, sizeof found);
  return {};
}

}  // namespace

Result<void*> driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
  GYRE_TRY(said(name, error));
  if (result != cudaDriverEntryPointSuccess || found == nullptr) return Error{Code::cuda, std::string("the driver has no ") + name};
  return found;
}

Status said(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // so that no later call reports it
  return Error{Code::cuda, std::string(what) + ": " + cudaGetErrorString(error)};
}
Status said(const char* what, CUresult result) {
  return result == CUDA_SUCCESS ? Status() : Error{Code::cuda, std::string(what) + ": error " + std::to_string(static_cast<int>(result))};
}

Result<Place*> Place::of(int device) {
  static std::mutex mutex;
  static auto& places = *new std::map<int, std::unique_ptr<Place>>;  // what is CUDA's may end before what is static
  const std::lock_guard lock(mutex);
  if (const auto known = places.find(device); known != places.end()) return known->second.get();
  auto place = std::make_unique<Place>();
  GYRE_TRY(place->open(device));
  return places.emplace(device, std::move(place)).first->second.get();
}

Status Place::open(int number) {
  device = number;
  GYRE_TRY(kernels::open("cuStreamWaitValue64", driver.wait));
  GYRE_TRY(kernels::open("cuStreamWriteValue64", driver.write));
  GYRE_TRY(kernels::open("cuDeviceGetAttribute", driver.attribute));
  GYRE_TRY(kernels::open("cuCtxPushCurrent", driver.push));
  GYRE_TRY(kernels::open("cuCtxPopCurrent", driver.pop));
  decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;
  GYRE_TRY(kernels::open("cuDevicePrimaryCtxRetain", retain));
  decltype(&cuDeviceGetUuid) uuid_of = nullptr;
  GYRE_TRY(kernels::open("cuDeviceGetUuid", uuid_of));
  GYRE_TRY(said("cuDeviceGetUuid", uuid_of(&uuid, device)));
  GYRE_TRY(said("cuDevicePrimaryCtxRetain", retain(&context, device)));
  const On on(*this);
  GYRE_TRY(on.there());
  GYRE_TRY(load_step_kernels());
  GYRE_TRY(open_pool());
  return {};
}

Status Place::open_pool() {
  int pools = 0;
  GYRE_TRY(said("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, device)));
  if (pools == 0) return {};
  cudaMemPoolProps wanted{};
  wanted.allocType = cudaMemAllocationTypePinned;
  wanted.location.type = cudaMemLocationTypeDevice;
  wanted.location.id = device;
  GYRE_TRY(said("cudaMemPoolCreate", cudaMemPoolCreate(&pool_, &wanted)));
  uint64_t keep = UINT64_MAX;
  GYRE_TRY(said("cudaMemPoolSetAttribute", cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep)));
  return said("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

Result<GpuMemory> Place::allocate(size_t bytes) {
  const On on(*this);
  GYRE_TRY(on.there());
  void* memory = nullptr;
  if (pool_ == nullptr) {
    GYRE_TRY(said("cudaMalloc", cudaMalloc(&memory, bytes)));
  } else {
    GYRE_TRY(said("cudaMallocFromPoolAsync", cudaMallocFromPoolAsync(&memory, bytes, pool_, stream_)));
    GYRE_TRY(said("cudaStreamSynchronize", cudaStreamSynchronize(stream_)));
  }
  return GpuMemory(static_cast<std::byte*>(memory), [this](std::byte* old) {
    const On inside(*this);
    if (!inside.there()) return;
    if (pool_ == nullptr)
      cudaFree(old);
    else
      cudaFreeAsync(old, stream_);
  });
}

Result<GpuMemory> Place::allocate_pinned(size_t bytes) {
  std::byte* memory = kept(pinned_, bytes);
  if (memory == nullptr) {
    const On on(*this);
    GYRE_TRY(on.there());
    void* fresh = nullptr;
    GYRE_TRY(said("cudaHostAlloc", cudaHostAlloc(&fresh, bytes, cudaHostAllocPortable | cudaHostAllocMapped)));
    memory = static_cast<std::byte*>(fresh);
  }
  std::memset(memory, 0, bytes);
  return keeping(memory, pinned_, bytes);
}

GpuMemory Place::keeping(std::byte* memory, Unused& unused, size_t bytes) {
  return {memory, [this, &unused, bytes](std::byte* old) {
            const std::lock_guard lock(mutex_);
            unused.emplace(bytes, old);
          }};
}

std::byte* Place::kept(Unused& unused, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = unused.find(bytes);  // communicators of a job are alike
  if (found == unused.end()) return nullptr;
  std::byte* const memory = found->second;
  unused.erase(found);
  return memory;
}

}  // namespace gyre::kernels
