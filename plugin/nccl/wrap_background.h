// What gyre does in the background for a communicator that does not block: it makes its part beside NCCL's, or ends it. Until that is done
// ncclCommGetAsyncError says ncclInProgress, whatever NCCL says, so that no program calls before its rank knows who runs what:
//
//   NCCL is at work ──────> NCCL is done, gyre at work ──────> ready
//      └─ a call: refused,      └─ a call: waits, which programs don't
//         as NCCL does             that have asked until it was ready
//
// One thread at a time asks NCCL how far it is: in some releases that call also ends what has been done. Who ends a communicator withdraws
// it first, and from then on nothing in the background asks NCCL of it, or puts gyre's part beside it.
#pragma once
#include <atomic>
#include <functional>

#include "base/result.h"
#include "plugin/abi/nccl.h"

namespace gyre::plugin::nccl::wrap {

/// One such work, for the thread that does it.
class Background {
 public:
  explicit Background(ncclComm_t comm) : comm_(comm) {}

  /// Until NCCL is done with the communicator. `look`: is told what has come of that, while nobody can end it. False: it was withdrawn.
  bool await_nccl(const std::function<void(ncclResult_t)>& look);
  const std::atomic<bool>& withdrawn() const { return withdrawn_; }
  /// The communicator is ready. `last`: before that, and not where it was withdrawn.
  void end(const std::function<void()>& last);

 private:
  friend struct Works;

  const ncclComm_t comm_;
  std::atomic<bool> withdrawn_{false};
  bool nccl_done_ = false, over_ = false;  // under the mutex of all works
};

/// It is in progress from now on. Throws where there is no thread to be had.
void begin_background(ncclComm_t, std::function<void(Background&)> work);
/// Where something is in the background it is over when this returns. Error: NCCL is not done yet, or the communicator has been ended.
Status ready(ncclComm_t);
/// ncclCommGetAsyncError.
ncclResult_t ask_nccl(ncclComm_t, ncclResult_t* state);
void withdraw(ncclComm_t);

}  // namespace gyre::plugin::nccl::wrap
