// Ends a process whose work does not: a rank that waits for ever in a call can't look at a clock. A thread that sleeps until then.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace gyre::perf {

class Watchdog {
 public:
  /// 0 seconds: none watches, and no thread is started. `who` begins what is said, such as "rank 1: ".
  Watchdog(int seconds, std::string who);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// From now on `what` has that many seconds. The process ends with exit code 1 and a line on stderr when they are over.
  void begin(const std::string& what);
  /// Nothing is watched any more.
  void end();

 private:
  void watch();

  const int seconds_;
  const std::string who_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  std::optional<std::chrono::steady_clock::time_point> until_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace gyre::perf
