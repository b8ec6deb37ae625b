#include "perf/watchdog.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace gyre::perf {

Watchdog::Watchdog(int seconds, std::string who) : seconds_(seconds), who_(std::move(who)) {
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
      fmt::print(stderr, "gyre-perf: {}-T {}: {} has not ended within {} s\n", who_, seconds_, what_, seconds_);
      std::fflush(stderr);
      _exit(1);  // no destructors: they would wait for the call that does not end
    } else {
      changed_.wait_until(lock, *until_);
    }
  }
}

}  // namespace gyre::perf
