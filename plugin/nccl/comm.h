// gyre's communicator behind an ncclComm_t: an engine's, with what NCCL's interface adds to one. It can be in progress (being made, or at
// work for a non-blocking caller), has an asynchronous error, and may be aborted by any thread at any time. Handles are known by a
// registry, so that one that is none, or was destroyed, is an error and no crash.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/communicator.h"
#include "plugin/abi/nccl.h"
#include "plugin/nccl/config.h"
#include "plugin/nccl/cuda_driver.h"
#include "plugin/nccl/on_gpu.h"

namespace gyre::plugin::nccl {

/// An operation made by ncclRedOpCreatePreMulSum: what this rank's input is multiplied by.
struct PremulSum {
  DataType type = DataType::float32;
  uint64_t scalar = 0;       ///< its bits
  const void* at = nullptr;  ///< not null: they lie there when a collective runs
};

class Comm {
 public:
  Comm(Rank own, int ranks, int on, Settings chosen) : rank(own), size(ranks), device(on), settings(chosen) {}

  const Rank rank;
  const int size;
  const int device;
  const Settings settings;
  std::map<int, PremulSum> premul_sums;  ///< by the number that stands for them in ncclRedOp_t
  std::atomic<bool> finalized{false};

  /// Of one that was made, in the thread that has begun a call.
  engine::Communicator& engine() const { return *engine_; }
  /// Of such a one, too: what runs calls on GPU memory; null: not all ranks have a GPU.
  OnGpu* on_gpu() const { return on_gpu_.get(); }
  /// It was made. Error: it was aborted meanwhile, and is gone.
  Status made(std::unique_ptr<engine::Communicator>, std::unique_ptr<OnGpu> on_gpu = nullptr);
  bool is_made() const { return made_; }

  /// A call is under way until it ends; one in the background is in progress, as ncclCommGetAsyncError says. False: another is under way,
  /// or the communicator was aborted.
  bool begin_call(bool in_background);
  /// What came of it. Errors of making, of the job, and of what runs in the background stay, so that who asks later learns of them.
  void end_call(ncclResult_t result);
  /// True: no call is under way (any more).
  bool wait_until_idle(std::chrono::milliseconds limit);

  /// For ncclCommGetAsyncError, which programs poll: from any thread, and as the two below asks no GPU and takes no lock, which an abort
  /// may have for seconds.
  ncclResult_t state() const;
  /// What its job has failed of, so far as is known.
  std::string failure() const;
  /// The same for whoever logs it: the first time only, where no call has returned it.
  std::optional<Error> untold();
  /// It has failed, and what it had not finished, if anything, holds streams.
  bool may_hold_streams() const { return made_ && on_gpu_ != nullptr && on_gpu_->failure() != nullptr && !let_go_; }
  /// Of one that was made, too: waits for what the stream has been given so far. Error: also where the communicator has failed, since it
  /// may be what holds the stream.
  Status wait_for(cudaStream_t, cuda::Context) const;
  Status wait_for(cuda::Mark&) const;
  /// Waits until what its GPU was given has ended. Error: it can't, and streams that were held by that go on.
  Status finish();
  /// The same where the process ends, until then. False: it has not, and what it has given to streams must hold them.
  bool settle(std::chrono::steady_clock::time_point until);
  /// The engine is nobody else's: the sends and receives that its GPU was given have been carried. Error: they can't be.
  Result<bool> engine_free() const { return on_gpu_ != nullptr ? on_gpu_->all_carried() : Result<bool>(true); }
  Status wait_for_engine() const;
  /// The same of one that may have failed: what is carried then ends, here and on the others. The engine is free in any case.
  void take_engine() const;
  /// Ends what runs, on this rank and the others, and lets streams go on that an error holds. From any thread.
  void interrupt();
  /// The same for good, also while it is made, or another of it. Where nothing runs the others hear only that this rank has left.
  void abort();
  /// True from abort() on.
  const std::atomic<bool>& aborted() const { return aborted_; }

 private:
  void interrupt_made();
  std::optional<Error> job_error() const;

  std::mutex mutex_;  // of busy_, and to write what follows
  std::condition_variable idle_;
  std::unique_ptr<engine::Communicator> engine_;  // stays as it is …
  std::unique_ptr<OnGpu> on_gpu_;
  std::atomic<bool> made_{false};  // … from then on
  bool busy_ = false;
  std::atomic<bool> in_background_{false};
  std::atomic<bool> told_{false};                  // the job's error
  std::atomic<ncclResult_t> error_ = ncclSuccess;  // written before in_background_ becomes false
  std::atomic<bool> aborted_{false};
  std::atomic<bool> let_go_{false};  // what streams were given, also later
};

using Shared = std::shared_ptr<Comm>;

/// Those that have a handle; whoever is called must neither take nor give one.
void for_each_comm(const std::function<void(ncclComm_t, const Comm&)>&);
/// A handle for a communicator, until forget().
ncclComm_t handle(Shared);
/// The same for one that goes by the handle of a real NCCL's communicator.
void adopt(ncclComm_t, Shared);
/// Null: the handle is none.
Shared look_up(ncclComm_t);
/// The same, which is an error then.
Result<Shared> find(ncclComm_t);
/// The same of one that was made and is not in progress.
Result<Shared> find_made(ncclComm_t);
/// The same of one that has no error.
Result<Shared> find_healthy(ncclComm_t);
Result<Shared> forget(ncclComm_t);
/// False: it no longer goes by that handle, since another thread has ended it.
bool forget(ncclComm_t, const Shared&);
/// The same, and another goes by it from then on; null: none.
bool replace(ncclComm_t, const Shared&, Shared by);

}  // namespace gyre::plugin::nccl
