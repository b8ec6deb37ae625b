// Runs work until it is done, waits, and turns what goes wrong into an error that says who, where and what for. Used by one thread at a
// time.
#pragma once
#include <chrono>
#include <optional>
#include <vector>

#include "engine/wait.h"
#include "engine/work.h"
#include "transport/bootstrap.h"
#include "transport/transport.h"

namespace gyre::engine {

class Executor {
 public:
  /// All that is given must outlive it. `workers`: those that need progress. `links`: what joins this rank to each, "shm".
  Executor(transport::Bootstrap& bootstrap, std::vector<transport::Worker*> workers, const std::vector<std::string>& links, Waiter& waiter)
      : bootstrap_(bootstrap), workers_(std::move(workers)), links_(links), waiter_(waiter) {}

  /// Blocks until the work is done and the user's memory is free, or the job can't go on, or its deadline has passed.
  Status run(Work&);
  /// Other work than before is driven by what follows.
  void begin();
  /// Does now what can be done of work that may be done in several steps, whatever runs between them. After one in which nothing moved,
  /// rest() or pass().
  Result<Work::Moved> step(Work&);
  /// Lets a moment pass.
  void rest(const Work&);
  /// The caller has something else to do.
  void pass() {
    waiter_.pass();
    look_far_ = true;
  }

 private:
  Status drive(Work&);
  void go_on();
  const Error* known() const;
  Result<Work::Moved> advance(Work&);
  bool progress();
  Status look(const Work&);
  bool may_still_come(const Work&);
  Status ended(const Work&);
  Status stalled(const Work&);
  void describe(const Work&, bool urgent);
  Error late(const Work&, std::chrono::milliseconds limit);
  bool is_late(std::chrono::milliseconds limit);
  Error settle(const Work&);
  Error explain(const Error& cause, const Work&) const;

  transport::Bootstrap& bootstrap_;
  std::vector<transport::Worker*> workers_;
  const std::vector<std::string>& links_;
  Waiter& waiter_;
  std::chrono::steady_clock::duration vain_{};                      // how long nothing has moved while it was waited for
  std::chrono::steady_clock::time_point counted_;                   // up to when; zero: not yet
  std::optional<std::chrono::steady_clock::time_point> end_known_;  // since when, of a peer that is awaited
  int looked_since_ = 0;                                            // so often what it had sent, when that must have come
  bool look_far_ = false;                                           // what a waiting rank looks at rarely is to be looked at
  std::optional<std::chrono::steady_clock::time_point> described_;  // this work, to rank 0
  bool warned_ = false;                                             // of this work, in the log
};

}  // namespace gyre::engine
