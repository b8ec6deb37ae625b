#include "plugin/nccl/wrap_background.h"

#include <chrono>
#include <thread>

#include "plugin/nccl/wrap_real.h"

namespace gyre::plugin::nccl::wrap {
namespace {

constexpr std::chrono::milliseconds look_nap{1};  // between two looks at how far NCCL is

Error ended_meanwhile() { return {Code::invalid_argument, "the communicator was aborted or destroyed meanwhile"}; }

}  // namespace

Error Background::in_progress() {
  return {Code::invalid_argument, "the communicator is in progress: ask ncclCommGetAsyncError until it is not, or abort it"};
}

Result<ncclResult_t> Background::ask(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(mutex_);
  if (withdrawn_) return ended_meanwhile();
  const ncclResult_t result = hear_real<&Table::ncclCommGetAsyncError>(comm, state);
  if (result == ncclSuccess && *state == ncclSuccess && begun_ > 0) *state = ncclInProgress;
  return result;
}

Status Background::wait() {
  if (begun_ == 0) return {};
  std::unique_lock lock(mutex_);
  if (at_nccl_ > 0 && !withdrawn_) return in_progress();
  changed_.wait(lock, [&] { return begun_ == 0 || withdrawn_; });
  return withdrawn_ ? Status(ended_meanwhile()) : Status();
}

void Background::withdraw() {
  const std::lock_guard lock(mutex_);
  withdrawn_ = true;
  changed_.notify_all();
}

void Background::begin() {
  const std::lock_guard lock(mutex_);
  ++begun_;
  ++at_nccl_;
}

void Background::await_nccl(ncclComm_t comm, const std::function<void(ncclResult_t)>& look) {
  for (;; std::this_thread::sleep_for(look_nap)) {
    const std::lock_guard lock(mutex_);
    if (withdrawn_) return;
    ncclResult_t state = ncclInProgress;
    const ncclResult_t asked = call_real<&Table::ncclCommGetAsyncError>(comm, &state);
    if (asked == ncclSuccess && state == ncclInProgress) continue;
    --at_nccl_;
    return look(asked == ncclSuccess ? state : asked);
  }
}

void Background::end(const std::function<void()>& last) {
  const std::lock_guard lock(mutex_);
  if (!withdrawn_) last();
  --begun_;
  changed_.notify_all();
}

}  // namespace gyre::plugin::nccl::wrap
