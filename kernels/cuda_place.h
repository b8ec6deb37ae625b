// A GPU as all of a process sees it: its own context, what CUDA's runtime has no calls for, and memory that is taken and given back without
// waiting for what runs there.
#pragma once
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "kernels/gpu.h"
#include "kernels/try_gates.h"

namespace gyre::kernels {

/// An error of CUDA's in words; `what` is the call.
Status said(const char* what, cudaError_t);
Status said(const char* what, CUresult);

/// In the driver that is there, so that nothing is linked with it. Error: it has no such function.
Result<void*> driver_function(const char* name);

struct Driver {
  decltype(&cuStreamWaitValue64) wait = nullptr;
  decltype(&cuStreamWriteValue64) write = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  decltype(&cuCtxPushCurrent) push = nullptr;
  decltype(&cuCtxPopCurrent) pop = nullptr;
};

/// Of the process, never closed: ranks that share it come and go, and to close what is CUDA's waits for all that runs on the GPU, which may
/// be another rank's kernel that waits for us. For the same reason memory is the pool's and not cudaFree()'s, and what no pool has, pinned
/// memory and what other processes reach, is kept, and so is what of theirs is mapped here.
class Place {
 public:
  static Result<Place*> of(int device);

  // From any thread.
  Result<GpuMemory> allocate(size_t bytes);
  Result<GpuMemory> allocate_pinned(size_t bytes);
  Result<ReachableMemory> allocate_reachable(size_t bytes);
  Result<ReachedMemory> reach(std::string_view handle);
  Result<ExposedMemory> allocate_exposed(size_t bytes);

  Driver driver;
  CUcontext context = nullptr;
  int device = 0;
  CUuuid uuid{};                              ///< of the device, whose number is another one in another process
  std::mutex trying;                          ///< of gates
  std::atomic<Gates> gates = Gates::unknown;  ///< whether streams wait for flags, and others go on meanwhile

 private:
  Status open(int number);
  Status open_pool();
  /// So much that the allocation is no other's: CUDA takes it at once, where less may share one, and others are told of the whole.
  static size_t whole(size_t bytes) {
    constexpr size_t granularity = size_t{2} << 20;
    return (bytes + granularity - 1) / granularity * granularity;
  }
  Result<GpuMemory> allocate_whole(size_t bytes);
  using Unused = std::multimap<size_t, std::byte*>;
  std::byte* kept(Unused&, size_t bytes);
  GpuMemory keeping(std::byte*, Unused&, size_t bytes);

  cudaMemPool_t pool_ = nullptr;   ///< null where the device has none
  cudaStream_t stream_ = nullptr;  ///< on which it is asked; never waits for anything
  std::mutex mutex_;
  Unused pinned_, reachable_;
  std::map<std::string, std::byte*, std::less<>> reached_;  ///< of other processes, by handle
};

/// Calls of this thread go there meanwhile; what it had before is as it was, be it nothing. They spoil no capture of a graph that any
/// thread of the program makes: what is asked and taken here has nothing to do with its streams.
class On {
 public:
  explicit On(const Place& place) : place_(place), there_(said("cuCtxPushCurrent", place.driver.push(place.context))) {
    if (there_) cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  ~On() {
    if (!there_) return;
    cudaThreadExchangeStreamCaptureMode(&mode_);
    CUcontext ours = nullptr;
    place_.driver.pop(&ours);
  }
  /// Error: calls would go elsewhere.
  const Status& there() const { return there_; }
  On(const On&) = delete;
  On& operator=(const On&) = delete;

 private:
  const Place& place_;
  Status there_;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // the other one of the two meanwhile
};

}  // namespace gyre::kernels
