#include "plugin/caretaker.h"

#include <unistd.h>

#include <chrono>
#include <system_error>

#include "base/log.h"
#include "plugin/no_signals.h"

namespace gyre::plugin {
namespace {

constexpr std::chrono::milliseconds caretaker_interval{5};

}  // namespace

void Caretaker::start() {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return;
  const NoSignals blocked;
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    pid_ = getpid();
    pthread_setname_np(thread_.native_handle(), "gyre-net");
  } catch (const std::system_error& failed) {
    log::warn("no thread to look after idle connections: {}", failed.what());
  }
}

void Caretaker::stop() {
  if (pid_ != getpid()) return;
  std::jthread gone;
  {
    const std::lock_guard lock(mutex_);
    gone = std::move(thread_);
  }
}

void Caretaker::run(const std::stop_token& stop) {
  std::unique_lock lock(sleep_mutex_);
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, caretaker_interval, [] { return false; });
    try {
      look_();
    } catch (const std::exception& failed) {
      log::warn("while looking after idle connections: {}", failed.what());
    }
  }
}

}  // namespace gyre::plugin
