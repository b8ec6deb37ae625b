// The connections of a worker that have something under way, so that progress costs nothing for the others: those whose kernel did not
// take everything, asked each time, and those that wait for messages, asked one after the other while nothing else moves. Each is entered
// once. Used by the worker's thread; allocates only when connections come.
#pragma once
#include <poll.h>

#include <chrono>
#include <optional>
#include <vector>

#include "base/result.h"

namespace gyre::transport::tcp {

class TcpFifo;

class Traffic {
 public:
  explicit Traffic(std::chrono::seconds silence) : silence_(silence) {}

  void add(TcpFifo&);
  void remove(TcpFifo&);
  /// It has messages that the kernel did not take.
  void queue(TcpFifo&);
  /// It has announced messages.
  void await(TcpFifo&);
  /// A message was used: who waits asks its own socket, and the others can wait.
  void moved() { idle_ = 0; }
  unsigned progress();
  /// Adds the sockets that have something under way, each with what it waits for. Those of others would be ready all the time, for messages
  /// that nobody has announced.
  void arm(std::vector<pollfd>& awaited);

  /// Keeps the first.
  void record(const Error& failure) {
    if (!failure_) failure_ = failure;
  }
  const Error* failure() const { return failure_ ? &*failure_ : nullptr; }

 private:
  unsigned ask_one();
  void look_at_hosts();

  const std::chrono::seconds silence_;
  std::vector<TcpFifo*> all_, queued_, awaited_;
  uint32_t idle_ = 0;  // calls of progress() since something moved
  size_t next_ = 0;    // of awaited_
  std::chrono::steady_clock::time_point looked_{};
  std::optional<Error> failure_;
};

}  // namespace gyre::transport::tcp
