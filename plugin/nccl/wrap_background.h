// What gyre does in the background for a communicator that does not block: NCCL makes it, and what is split off it, in a thread of its own,
// and when that is done gyre's part is made in another. Until then ncclCommGetAsyncError says ncclInProgress, whatever NCCL says, so that
// no program calls before its rank knows who runs what:
//
//   NCCL is at work ──────> NCCL is done, gyre at work ──────> ready
//      └─ a call: refused,      └─ a call: waits, which programs don't
//         as NCCL does             that have asked until it was ready
//
// One thread at a time asks NCCL how far it is: in some releases that call also frees what has been done. Who ends the communicator
// withdraws it first: from then on nothing in the background asks NCCL of it, or puts gyre's part beside it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "base/result.h"
#include "plugin/abi/nccl.h"

namespace gyre::plugin::nccl::wrap {

/// Of one communicator.
class Background {
 public:
  /// Of a call meanwhile.
  static Error in_progress();
  /// ncclCommGetAsyncError. Error: it has been ended.
  Result<ncclResult_t> ask(ncclComm_t, ncclResult_t* state);
  /// When nothing is in the background (any more). Error: NCCL is not done, or it has been ended.
  Status wait();
  /// Also while others wait here.
  void withdraw();
  /// For a call that ends what NCCL has in the background: while it lives nobody asks NCCL here.
  std::unique_lock<std::mutex> pause() { return std::unique_lock(mutex_); }

  /// It is in progress from now on, until …
  void begin();
  /// In the background: until NCCL is done. `look`: is told what has come of that, while nobody can end it. It is not where it was
  /// withdrawn.
  void await_nccl(ncclComm_t, const std::function<void(ncclResult_t)>& look);
  /// … this. `last`: before that, and not where it was withdrawn.
  void end(const std::function<void()>& last);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> begun_{0};  // and not ended
  int at_nccl_ = 0;            // of these
  bool withdrawn_ = false;
};

}  // namespace gyre::plugin::nccl::wrap
