// What calls become: operations (collectives, sends, receives) and tasks (communicators that are to be made), done at once, or, between
// ncclGroupStart and ncclGroupEnd of the thread, together at the end. An error of one call spoils its group, of which then nothing is done.
//
//   ncclAllReduce … ─┐                      blocking: done when the call returns, by the calling thread
//   ncclSend …       ├─> submit() ─> run ─<
//   ncclCommSplit … ─┘    (group)           else: by a thread of its own, and the communicators are in progress until it is done
//
// Collectives, sends and receives on GPU memory have then been given to the stream. All else has no stream that could wait: it is done when
// the call returns success, or when ncclCommGetAsyncError no longer says ncclInProgress.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "plugin/nccl/comm.h"
#include "plugin/nccl/cuda_driver.h"
#include "plugin/nccl/errors.h"

namespace gyre::plugin::nccl {

struct Operation {
  Shared comm;
  const char* name;                  ///< of the function that was called
  std::optional<engine::Call> call;  ///< a collective; none: a transfer
  engine::Transfer transfer;
  const void* input = nullptr;
  void* output = nullptr;
  const void* scalar_at = nullptr;  ///< where the call's scalar lies, read when it runs; null: it is in the call
  cudaStream_t stream = nullptr;    ///< whose work so far comes first
  bool on_gpu = false;              ///< the memory is reached by the GPU: a collective is done in the stream's order, and …
  bool carried = false;             ///< … so is this transfer, with all that its communicator has in the group
  bool captured = false;            ///< the stream is, in a CUDA graph
  cuda::Context context = nullptr;  ///< of the stream; null: the calling thread's
};
/// Something that needs all ranks of a communicator.
struct Task {
  Shared comm;
  const char* name;
  std::function<Status()> run;
  std::function<void()> announce = [] {};  ///< before it runs in the background: gives the program what it is to have at once
};

Result<ncclResult_t> submit(Operation);
Result<ncclResult_t> submit(std::vector<Task>);
/// Does them now, whatever group there is.
Result<ncclResult_t> perform(std::vector<Operation>);
Result<ncclResult_t> perform(Task);
/// A call that a group would have recorded has failed.
void spoil_group(ncclResult_t) noexcept;
/// Answers a call that a group records.
template <class Call>
ncclResult_t grouped(const char* name, Call&& call) noexcept {
  const ncclResult_t result = answer(name, std::forward<Call>(call));
  if (is_error(result)) spoil_group(result);
  return result;
}
void start_group() noexcept;
Result<ncclResult_t> end_group();
/// Ends the group as end_group() does, but does nothing. What it would take, in microseconds, as far as gyre's model knows; none: it
/// doesn't.
Result<std::optional<double>> simulate_group();

}  // namespace gyre::plugin::nccl
