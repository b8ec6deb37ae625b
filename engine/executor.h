// Runs plans: drives one machine per channel until all have finished, waits, and turns what goes wrong into an error that says who, where
// and what for. Used by one thread at a time.
#pragma once
#include <memory>
#include <vector>

#include "engine/host_machine.h"
#include "engine/wait.h"
#include "transport/bootstrap.h"

namespace gyre::engine {

class Executor {
 public:
  /// The bootstrap and the workers must outlive it. `workers`: those that need progress.
  Executor(transport::Bootstrap& bootstrap, std::vector<transport::Worker*> workers, std::vector<HostMachine> machines, bool crowded);

  /// Runs call number `call`. Blocks until the result is there and the user's memory is free, or the job can't go on.
  Status run(const Plan& plan, uint64_t call, const void* input, void* output);

 private:
  void progress();
  Status wait(const Plan& plan, uint64_t call);
  Status stalled(const Plan& plan, uint64_t call);
  Error settle(const Plan& plan, uint64_t call);
  Error explain(const Error& cause, const Plan& plan, uint64_t call);
  const HostMachine& waiting() const;

  transport::Bootstrap& bootstrap_;
  std::vector<transport::Worker*> workers_;
  std::vector<HostMachine> machines_;
  Waiter waiter_;
  bool described_ = false;  // this call, to rank 0
  bool warned_ = false;     // of this call, in the log
};

}  // namespace gyre::engine
