// Moves connections on while NCCL does not call. UCX calls a small message sent when it lies in a buffer of UCX's, from where only another
// call sends it if the socket was full; but NCCL calls no more when all its requests are done, and the receiver would wait for ever. So
// while there are connections, a thread looks every few milliseconds. (A flush before "done" would cost every message a round trip.)
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace gyre::plugin {

class Caretaker {
 public:
  explicit Caretaker(std::function<void()> look) : look_(std::move(look)) {}
  Caretaker(const Caretaker&) = delete;
  Caretaker& operator=(const Caretaker&) = delete;
  ~Caretaker() { stop(); }

  /// Unless it runs already. Where the system has no thread for us, there is none.
  void start();
  /// It is gone on return.
  void stop();

 private:
  void run(const std::stop_token&);

  const std::function<void()> look_;
  std::mutex mutex_;  // of thread_
  std::mutex sleep_mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
  int pid_ = 0;  // whose thread it is: a forked child has the object only
};

}  // namespace gyre::plugin
