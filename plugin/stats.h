// GYRE_STATS: what the connections of this process count, gathered and written for those who look from outside. Written at the start (so
// that a file that can't be written is known then, not after days), when the last connection is closed, when a communicator ends, when the
// process exits by exit(), and, if so told, every few seconds in between, by a thread that lives only while there are connections.
//
// Connections write their Counters as always; here they are only read. Called from any thread, but not on the way of a message; takes no
// turn of a group.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "plugin/stats_book.h"

namespace gyre::plugin {

class Stats {
 public:
  Stats() = default;
  Stats(const Stats&) = delete;
  Stats& operator=(const Stats&) = delete;

  /// Once. Without it, or with an empty name, all below does nothing. `interval` 0: no thread.
  void start(std::string_view name, std::chrono::milliseconds interval, std::vector<DeviceStats>);
  void add(DeviceStats);
  void opened(ConnectionStats, const Counters&);
  void closed(const Counters&);
  void stranger() { strangers_.fetch_add(1, std::memory_order_relaxed); }
  /// Something was closed. If it was the last, the thread is gone on return, and all is written.
  void settle();
  /// The same, and all is written in any case.
  void finish();
  /// The process ends now, with whatever threads it has: the last writing.
  void at_exit() noexcept;

  const std::string& path() const { return path_; }

 private:
  void start_thread();  // with mutex_
  void run(const std::stop_token&);
  StatsReport report() const;                    // with mutex_
  Status write_files(const StatsReport&) const;  // with writing_
  void write() noexcept;

  std::atomic<bool> on_{false};  // set last; what stands up to the next blank line is constant then
  std::string path_, host_;
  uint32_t pid_ = 0;
  std::chrono::milliseconds interval_{0};

  std::atomic<uint64_t> strangers_{0};
  std::mutex mutex_;  // of all below; never held while anything is written
  StatsBook book_;
  std::condition_variable_any wake_;
  bool threadless_ = false;  // the system has none for us

  std::mutex writing_;  // of the files and of the two below; before mutex_
  bool over_ = false;   // the process ends: nobody writes any more
  bool warned_ = false;
  std::jthread thread_;  // with mutex_; last, so that it is the first to go
};

}  // namespace gyre::plugin
