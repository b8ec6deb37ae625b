#include "perf/watchdog.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace gyre::perf {
namespace {

// Ranks that wait look up within moments, and some seconds more where rank 0 is asked what others do.
constexpr auto time_after_abort = std::chrono::seconds(4);

}  // namespace

Watchdog::Watchdog(int seconds, std::string who, std::function<void(const std::string&)> abort)
    : seconds_(seconds), who_(std::move(who)), abort_(std::move(abort)) {
  if (seconds_ == 0) return;
  sigset_t all;  // signals are the main thread's
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { watch(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watchdog::~Watchdog() {
  if (seconds_ == 0) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::begin(const std::string& what) {
  if (seconds_ == 0) return;
  {
    const std::lock_guard lock(mutex_);
    what_ = what;
    until_ = std::chrono::steady_clock::now() + std::chrono::seconds(seconds_);
  }
  changed_.notify_one();
}

void Watchdog::end() {
  const std::lock_guard lock(mutex_);
  until_.reset();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (!until_) {
      changed_.wait(lock);
    } else if (std::chrono::steady_clock::now() >= *until_) {
      late();
    } else {
      changed_.wait_until(lock, *until_);
    }
  }
}

void Watchdog::late() {
  const std::string why = fmt::format("-T {}: {} has not ended within {} s", seconds_, what_, seconds_);
  if (abort_ && !aborted_) {
    aborted_ = true;
    until_ = std::chrono::steady_clock::now() + time_after_abort;
    abort_(why);
    return;
  }
  fmt::print(stderr, "gyre-perf: {}{}\n", who_, why);
  std::fflush(stderr);
  _exit(1);  // no destructors: they would wait for the call that does not end
}

}  // namespace gyre::perf
