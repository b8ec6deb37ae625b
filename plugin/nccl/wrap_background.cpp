#include "plugin/nccl/wrap_background.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "plugin/guard.h"
#include "plugin/nccl/comm.h"
#include "plugin/nccl/wrap_real.h"

namespace gyre::plugin::nccl::wrap {
namespace {

constexpr std::chrono::milliseconds look_nap{1};  // between two looks at how far NCCL is

}  // namespace

// Never destroyed: threads may be at work while the process ends. A forked child has neither these nor what they do.
struct Works {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<Background>> all;
  std::atomic<size_t> count{0};  // of these, so that calls take no lock where there are none

  static Works& of_process() {
    static auto& only = *new Works;
    [[maybe_unused]] static const int watched = only.watch_forks();
    return only;
  }
  // After the registry of communicators has, so that a fork takes both locks in the order in which end() does.
  int watch_forks() {
    look_up(nullptr);
    return ::pthread_atfork([] { of_process().mutex.lock(); }, [] { of_process().mutex.unlock(); }, [] { of_process().begin_child(); });
  }
  void begin_child() {
    all.clear();
    count = 0;
    mutex.unlock();
  }
  std::shared_ptr<Background> of(ncclComm_t comm) const {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& work) { return work->comm_ == comm; });
    return found == all.end() ? nullptr : *found;
  }
  void add(std::shared_ptr<Background> work) {
    const std::lock_guard lock(mutex);
    all.push_back(std::move(work));
    count = all.size();
  }
  template <class Which>
  void take_out(Which which) {
    const auto left = std::stable_partition(all.begin(), all.end(), [&](const auto& work) { return !which(*work); });
    std::for_each(left, all.end(), [](const auto& work) { work->over_ = true; });
    all.erase(left, all.end());
    count = all.size();
    changed.notify_all();
  }
  Status wait_for_all_of(ncclComm_t comm) {
    std::unique_lock lock(mutex);
    while (const auto work = of(comm)) {
      if (!work->nccl_done_)
        return Error{Code::invalid_argument, "the communicator is in progress: ask ncclCommGetAsyncError until it is not, or abort it"};
      changed.wait(lock, [&] { return work->over_; });
      if (work->withdrawn_) return Error{Code::invalid_argument, "the communicator was aborted meanwhile"};
    }
    return {};
  }
  void withdraw_all_of(ncclComm_t comm) {
    const std::lock_guard lock(mutex);
    for (const auto& work : all) work->withdrawn_ = work->withdrawn_ || work->comm_ == comm;
    take_out([comm](const Background& work) { return work.comm_ == comm; });
  }
};

bool Background::await_nccl(const std::function<void(ncclResult_t)>& look) {
  Works& works = Works::of_process();
  for (;; std::this_thread::sleep_for(look_nap)) {
    const std::lock_guard lock(works.mutex);
    if (withdrawn_) return false;
    ncclResult_t state = ncclInProgress;
    const ncclResult_t asked = call_real<&Table::ncclCommGetAsyncError>(comm_, &state);
    if (asked == ncclSuccess && state == ncclInProgress) continue;
    nccl_done_ = true;
    look(asked == ncclSuccess ? state : asked);
    return true;
  }
}

void Background::end(const std::function<void()>& last) {
  Works& works = Works::of_process();
  const std::lock_guard lock(works.mutex);
  if (!over_ && last) last();
  works.take_out([this](const Background& work) { return &work == this; });
}

void begin_background(ncclComm_t comm, std::function<void(Background&)> work) {
  const auto begun = std::make_shared<Background>(comm);
  Works::of_process().add(begun);
  try {
    std::thread([begun, work = std::move(work)] {
      guard("gyre's part of a communicator that does not block", [&]() -> Status {
        work(*begun);
        return {};
      });
      begun->end({});
    }).detach();
  } catch (...) {
    begun->end({});
    throw;
  }
}

Status ready(ncclComm_t comm) {
  Works& works = Works::of_process();
  return works.count == 0 ? Status() : works.wait_for_all_of(comm);
}

ncclResult_t ask_nccl(ncclComm_t comm, ncclResult_t* state) {
  Works& works = Works::of_process();
  if (works.count == 0) return call_real<&Table::ncclCommGetAsyncError>(comm, state);
  const std::lock_guard lock(works.mutex);
  const ncclResult_t result = call_real<&Table::ncclCommGetAsyncError>(comm, state);
  if (result == ncclSuccess && *state == ncclSuccess && works.of(comm) != nullptr) *state = ncclInProgress;
  return result;
}

void withdraw(ncclComm_t comm) {
  Works& works = Works::of_process();
  if (works.count > 0) works.withdraw_all_of(comm);
}

}  // namespace gyre::plugin::nccl::wrap
