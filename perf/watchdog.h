// Ends work that does not end: a rank that waits for ever in a call can't look at a clock. A thread that sleeps until then.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace gyre::perf {

class Watchdog {
 public:
  /// 0 seconds: none watches, and no thread is started. `who` begins what is said, such as "rank 1: ". `abort`, which the thread calls,
  /// lets what runs end by itself, with an error that names whom it waited for; empty: it can't.
  Watchdog(int seconds, std::string who, std::function<void(const std::string& why)> abort = {});
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// From now on `what` has that many seconds. When they are over it is aborted; where it can't be, or does not end of that within
  /// moments, the process ends with exit code 1 and a line on stderr.
  void begin(const std::string& what);
  /// Nothing is watched any more.
  void end();

 private:
  void watch();
  void late();

  const int seconds_;
  const std::string who_;
  const std::function<void(const std::string&)> abort_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  std::optional<std::chrono::steady_clock::time_point> until_;
  bool aborted_ = false;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace gyre::perf
