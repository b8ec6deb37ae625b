// What CUDA's driver says of the program's memory and streams, where the program has loaded it. Nothing is loaded here; where there is no
// driver, or GYRE_DEVICE=host, all memory is the host's and streams mean nothing.
#pragma once
#include <cstdint>
#include <string>

#include "base/config.h"
#include "plugin/abi/nccl.h"

namespace gyre::plugin::nccl::cuda {

/// Looks for the driver; when communicators are made, which is after the program has chosen its device.
void look(const Config&);
/// The same where NCCL runs some of the calls, by streams that it shares with the program: whatever GYRE_DEVICE says.
void look();
bool present();
/// That of this thread's context; 0: none.
int current_device();
/// Error: CUDA says that it is none.
Status is_device(int);
/// "0000:1b:00.0", of this device; empty: nobody says.
std::string pci_address(int device);
/// The memory can be read by the device only.
bool on_gpu(const void*);
/// The device reaches it: its own memory, or the host's that is pinned.
bool reaches(const void*);

/// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD: as the null stream these are of the context that the thread is in, and by the second handle
/// each thread has a stream of its own.
inline const cudaStream_t legacy = reinterpret_cast<cudaStream_t>(uintptr_t{1});      // NOLINT(performance-no-int-to-ptr): CUDA's handles
inline const cudaStream_t per_thread = reinterpret_cast<cudaStream_t>(uintptr_t{2});  // NOLINT(performance-no-int-to-ptr)

/// What the null stream and the per-thread one are of; where there is none given, as the thread has it.
using Context = void*;
/// The calling thread's, by which copy() works in another one; null: none.
Context context();
/// That of a device, as CUDA counts, which the program and NCCL are in there. Null: there is no driver.
Result<Context> context_of(int device);
/// What the stream is given is not done, but kept for later.
Result<bool> captures(cudaStream_t, Context);
/// Copies between any memory of a GPU's and of the host's, after what the stream has been given so far, and waits for that.
Status copy(void* to, const void* from, size_t bytes, cudaStream_t, Context);
/// Of the thread's device; null where there are no bytes, as of cudaMalloc.
Result<void*> allocate(size_t bytes);
Status release(void*);

/// A place in the order of a stream's work, which outlives the stream. Of one thread at a time, whatever device is current there: streams
/// that each context has are those of its home.
class Mark {
 public:
  explicit Mark(Context home) : home_(home) {}
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark();
  /// After what the stream has been given so far. Where that can't be kept it is waited for; error: neither.
  Status set(cudaStream_t);
  /// That is done, or nothing was set.
  Result<bool> passed();
  /// What that stream is given from now on begins after it. Not one that is being captured, which CUDA lets wait for nothing outside.
  Status before(cudaStream_t);
  bool is_set() const { return is_set_; }
  /// Nothing is to come after it any more.
  void clear() { is_set_ = false; }

 private:
  Context home_;
  void* event_ = nullptr;
  Context context_ = nullptr;  // the event's
  bool is_set_ = false;
};

}  // namespace gyre::plugin::nccl::cuda
