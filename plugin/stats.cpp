#include "plugin/stats.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "plugin/no_signals.h"
#include "plugin/stats_file.h"

namespace gyre::plugin {
namespace {

constexpr std::chrono::milliseconds patience_at_exit{500};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

std::string iso_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

/// For who must not wait for ever: whoever holds it may have been the caller itself, interrupted by a signal.
bool lock_in_time(std::unique_lock<std::mutex>& lock) {
  const auto end = std::chrono::steady_clock::now() + patience_at_exit;
  while (!lock.try_lock()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

void Stats::start(std::string_view name, std::chrono::milliseconds interval, std::vector<DeviceStats> devices) {
  if (name.empty() || on_) return;
  host_ = host_name();
  pid_ = static_cast<uint32_t>(::getpid());
  path_ = stats_path(name, host_, pid_);
  interval_ = interval;
  on_ = true;
  for (auto& device : devices) add(std::move(device));
  log::info("counters are written to {} and {}.prom", path_, path_);
  write();
}

void Stats::add(DeviceStats device) {
  if (!on_) return;
  const std::lock_guard lock(mutex_);
  book_.add(std::move(device));
}

void Stats::opened(ConnectionStats about, const Counters& counters) {
  if (!on_) return;
  const std::lock_guard lock(mutex_);
  book_.opened(std::move(about), counters);
  if (interval_.count() > 0 && !threadless_ && !thread_.joinable()) start_thread();
}

void Stats::closed(const Counters& counters) {
  if (!on_) return;
  const std::lock_guard lock(mutex_);
  book_.closed(counters);
}

void Stats::start_thread() {
  const NoSignals blocked;
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    pthread_setname_np(thread_.native_handle(), "gyre-stats");
  } catch (const std::system_error& error) {
    threadless_ = true;
    log::warn("GYRE_STATS is written at the end only: there can be no thread for it: {}", error.what());
  }
}

void Stats::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, stop, interval_, [&] { return stop.stop_requested(); })) {
    lock.unlock();
    write();
    lock.lock();
  }
}

void Stats::settle() {
  if (!on_) return;
  {
    const std::lock_guard lock(mutex_);
    if (book_.has_open()) return;
  }
  finish();
}

void Stats::finish() {
  if (!on_) return;
  std::jthread ended;  // joined without the lock, before the writing
  {
    const std::lock_guard lock(mutex_);
    if (!book_.has_open()) ended = std::move(thread_);
  }
  if (ended.joinable()) {
    ended.request_stop();
    ended.join();
  }
  write();
}

// With what is counted until now, and without a word: whoever gave us a logger may be gone. Not in a process that was forked off: it has
// neither our threads nor our connections.
void Stats::at_exit() noexcept {
  if (!on_ || pid_ != static_cast<uint32_t>(::getpid())) return;
  try {
    std::unique_lock writing(writing_, std::defer_lock);
    std::unique_lock lock(mutex_, std::defer_lock);
    if (!lock_in_time(writing) || !lock_in_time(lock)) return;
    over_ = true;  // a thread that is cut off in the middle would leave half a file behind
    const StatsReport last = report();
    lock.unlock();
    (void)write_files(last);
  } catch (const std::exception&) {
    return;  // no memory for it
  }
}

StatsReport Stats::report() const {
  StatsReport all = book_.report();
  all.host = host_;
  all.pid = pid_;
  all.time = iso_time();
  all.strangers = strangers_.load(std::memory_order_relaxed);
  return all;
}

Status Stats::write_files(const StatsReport& told) const {
  GYRE_TRY(replace_file(path_, json_text(told)));
  return replace_file(path_ + ".prom", prometheus_text(told));
}

// The job goes on, whatever becomes of its counters.
void Stats::write() noexcept {
  try {
    const std::lock_guard writing(writing_);
    if (over_) return;
    std::unique_lock lock(mutex_);
    const StatsReport told = report();
    lock.unlock();
    const Status written = write_files(told);
    if (!written && !std::exchange(warned_, true)) log::warn("GYRE_STATS can't be written: {}", written.error().what);
  } catch (const std::exception&) {
    return;  // no memory for it now
  }
}

}  // namespace gyre::plugin
