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
  /// The bootstrap, the workers and the waiter must outlive it. `workers`: those that need progress.
  Executor(transport::Bootstrap& bootstrap, std::vector<transport::Worker*> workers, Waiter& waiter)
      : bootstrap_(bootstrap), workers_(std::move(workers)), waiter_(waiter) {}

  /// Blocks until the work is done and the user's memory is free, or the job can't go on.
  Status run(Work&);

 private:
  Status drive(Work&);
  void progress();
  Status wait(const Work&);
  Status stalled(const Work&);
  void describe(const Work&, bool urgent);
  Error settle(const Work&);
  Error explain(const Error& cause, const Work&) const;

  transport::Bootstrap& bootstrap_;
  std::vector<transport::Worker*> workers_;
  Waiter& waiter_;
  std::optional<std::chrono::steady_clock::time_point> described_;  // this work, to rank 0
  bool warned_ = false;                                             // of this work, in the log
};

}  // namespace gyre::engine
