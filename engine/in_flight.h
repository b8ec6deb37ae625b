// A communicator's operations that were begun without waiting, in their order; the first is under way. Whoever waits for anything in this
// process moves those of all communicators, so that ranks may wait for theirs in different orders.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/batch.h"
#include "engine/collective_work.h"

namespace gyre::engine {

/// A collective; or, where nothing is planned, a group of sends and receives; or work that is bound already.
struct Operation {
  std::shared_ptr<const Planned> planned;
  Identity call;
  Buffers buffers;
  std::vector<Transfer> transfers;
  TimeLimit limit;
  std::shared_ptr<Work> bound = nullptr;
};

class InFlight final : public Work {
 public:
  /// All must outlive it. `workers`: those that need progress.
  InFlight(CollectiveWork& collective, Batch& batch, std::vector<transport::Worker*> workers)
      : collective_(collective), batch_(batch), workers_(std::move(workers)) {}
  ~InFlight() override;

  /// True: nothing is under way, and no other thread touches what the communicator has until the next add().
  bool empty() const { return begun_ == ended_.load(std::memory_order_acquire); }
  /// How many operations were begun so far, which is the last one's number, and ended.
  uint64_t begun() const { return begun_; }
  uint64_t ended() const { return ended_.load(std::memory_order_acquire); }
  /// Held around what follows, and around all else that touches the communicator while this is not empty.
  std::mutex& mutex() { return mutex_; }
  void add(Operation);
  /// What follows is done for this one, which has not ended.
  void ask(uint64_t number) { asked_ = number; }
  /// They end with the communicator.
  void forget() { operations_.clear(); }

  Moved move() override;
  Rank stranger() const override { return front().stranger(); }
  std::optional<Error> wrong() const override { return front().wrong(); }
  /// The least of those up to the one that was asked for.
  TimeLimit limit() const override;
  bool waits_for_itself() const override { return front().waits_for_itself(); }
  std::vector<Rank> awaited() const override { return front().awaited(); }
  Rank awaits_only() const override { return -1; }  // asked without the lock
  std::string where() const override { return front().where(); }
  Description description() const override { return front().description(); }
  std::vector<transport::Pair> pairs() const override { return front().pairs(); }

  /// Moves those of all communicators for which nobody waits; true: there are some.
  static bool move_others();
  /// Somebody waits for that one, and moves all, so that no other thread does from now on; 0: nobody waits.
  void attend(uint64_t last) {
    const std::lock_guard lock(mutex_);
    attended_.store(last, std::memory_order_relaxed);
  }

 private:
  Work& front() const {
    const Operation& first = operations_.front();
    if (first.bound != nullptr) return *first.bound;
    return first.planned != nullptr ? static_cast<Work&>(collective_) : batch_;
  }
  void bind_front();

  CollectiveWork& collective_;
  Batch& batch_;
  std::vector<transport::Worker*> workers_;
  std::mutex mutex_;
  std::deque<Operation> operations_;
  bool bound_ = false;  // the first
  uint64_t begun_ = 0;
  uint64_t asked_ = 0;
  std::atomic<uint64_t> ended_{0};
  bool listed_ = false;
  std::atomic<uint64_t> attended_{0};
};

}  // namespace gyre::engine
