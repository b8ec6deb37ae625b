// What one rank knows of its job: parts of an all_gather, who has left, whether it is asked, and why the job failed. Fed with rank 0's
// messages by the thread that watches the connections; read by any thread.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/bootstrap_history.h"
#include "transport/bootstrap_wire.h"

namespace gyre::transport::bootstrap {

class Member {
 public:
  explicit Member(int size);

  /// A message from rank 0. Thread: the watching one.
  void take(const Message&);
  /// Sets why the job failed, unless that is known already.
  void fail(Error);

  bool attention() const { return flags_.load(std::memory_order_relaxed) != 0; }
  bool asked() const { return (flags_.load(std::memory_order_acquire) & asked_flag) != 0; }
  const Error* failure() const { return (flags_.load(std::memory_order_acquire) & failed_flag) != 0 ? &*failure_ : nullptr; }
  bool left(Rank rank) const { return left_[static_cast<size_t>(rank)].load(std::memory_order_acquire); }
  History& history() { return history_; }
  void answered() { flags_.fetch_and(~asked_flag, std::memory_order_acq_rel); }

  const Error* wait_for_failure(std::chrono::milliseconds limit);
  /// Every rank's part of an all_gather, counted from 1, by rank; null: not within the limit, 0: there is none. One thread at a time.
  /// Code::timeout: it has ended without.
  Result<std::optional<std::vector<std::string>>> wait_for_parts(uint64_t gather, std::chrono::milliseconds limit);

 private:
  static constexpr unsigned failed_flag = 1;
  static constexpr unsigned asked_flag = 2;

  void take_part(std::string_view payload);
  void take_left(Rank);

  History history_;
  std::atomic<unsigned> flags_{0};
  std::vector<std::atomic<bool>> left_;
  std::optional<Error> failure_;  ///< written once, before failed_flag
  std::mutex mutex_;              ///< guards what follows, and writing failure_
  std::condition_variable changed_;
  std::vector<std::string> parts_;
  size_t parts_arrived_ = 0;
  uint64_t without_parts_ = 0;  ///< the latest all_gather that has ended so
  std::string why_without_;
};

}  // namespace gyre::transport::bootstrap
