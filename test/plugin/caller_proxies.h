// A communicator's two threads, as NCCL has them. Service makes the connections, all at a time, registers memory of theirs again and again
// while traffic runs, and closes; Progress moves the traffic, and ends for good at the first error. A user's abort comes between two calls.
#pragma once
#include <mutex>
#include <random>

#include "test/plugin/caller_flow.h"
#include "test/plugin/caller_setup.h"

namespace gyre::test {

class Proxies {
 public:
  Proxies(const Caller& caller, const Job& job);
  /// The Service thread's work, from the first connection to the last close; what went wrong first. Code::timeout: aborted.
  Status serve();

 private:
  /// A registration besides the connection's own.
  struct Registered {
    Channel* channel;
    void* memory;
  };

  Status make_and_wait();
  Status make();
  Status register_something();
  void close();

  void drive();
  Status drive_once();
  void tell(bool moved);

  Caller caller_;
  const Job& job_;
  size_t expected_;  ///< connections
  // The Service thread's.
  std::vector<std::unique_ptr<Setup>> setups_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Registered> registered_;
  std::mt19937_64 random_;
  // The Progress thread's.
  std::vector<std::unique_ptr<Flow>> flows_;
  uint64_t messages_told_ = 0;
  Clock::time_point told_ = Clock::now();
  int quiet_ = 0;
  // Both threads'.
  std::mutex mutex_;
  std::vector<Channel*> new_channels_;  ///< by mutex_
  Status failed_;                       ///< by mutex_: Progress's error
  std::atomic<bool> stop_{false}, finished_{false}, lost_{false};
  std::atomic<Clock::time_point> moved_{Clock::now()};
};

}  // namespace gyre::test
