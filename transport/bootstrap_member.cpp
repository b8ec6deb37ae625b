#include "transport/bootstrap_member.h"

#include <fmt/format.h>

#include <utility>

#include "transport/bootstrap_text.h"

namespace gyre::transport::bootstrap {

Member::Member(int size) : left_(static_cast<size_t>(size)), parts_(static_cast<size_t>(size)) {}

void Member::take(const Message& message) {
  std::string_view payload = message.payload;
  switch (message.kind) {
    case Kind::part:
      return take_part(payload);
    case Kind::no_parts: {
      const std::lock_guard lock(mutex_);
      without_parts_ = bootstrap::take<uint64_t>(payload).value_or(0);
      why_without_ = payload;
      return changed_.notify_all();
    }
    case Kind::ask:
      flags_.fetch_or(asked_flag, std::memory_order_acq_rel);
      return;
    case Kind::left:
      return take_left(bootstrap::take<Rank>(payload).value_or(-1));
    case Kind::fail: {
      const auto code = static_cast<Code>(bootstrap::take<uint32_t>(payload).value_or(static_cast<uint32_t>(Code::remote)));
      return fail(Error{code, std::string(payload)});
    }
    default:
      return;  // a newer rank 0 may say more than we understand
  }
}

void Member::take_part(std::string_view payload) {
  const Rank rank = bootstrap::take<Rank>(payload).value_or(-1);
  const std::lock_guard lock(mutex_);
  if (rank < 0 || static_cast<size_t>(rank) >= parts_.size()) return;
  parts_[static_cast<size_t>(rank)] = payload;
  if (++parts_arrived_ == parts_.size()) changed_.notify_all();
}

void Member::take_left(Rank rank) {
  if (rank < 0 || static_cast<size_t>(rank) >= left_.size()) return;
  left_[static_cast<size_t>(rank)].store(true, std::memory_order_release);
  if (rank != 0) return;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();  // nobody collects parts any more
}

void Member::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = std::move(error);
  flags_.fetch_or(failed_flag, std::memory_order_acq_rel);
  changed_.notify_all();
}

const Error* Member::wait_for_failure(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return failure_.has_value(); });
  return failure();
}

Result<std::optional<std::vector<std::string>>> Member::wait_for_parts(uint64_t gather, std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  const auto over = [this, gather] { return parts_arrived_ == parts_.size() || without_parts_ >= gather || failure_ || left(0); };
  if (limit.count() == 0) {
    changed_.wait(lock, over);
  } else if (!changed_.wait_for(lock, limit, over)) {
    return std::optional<std::vector<std::string>>();
  }
  if (parts_arrived_ == parts_.size()) {
    parts_arrived_ = 0;
    return std::optional(std::exchange(parts_, std::vector<std::string>(parts_.size())));
  }
  if (without_parts_ >= gather) return Error{Code::timeout, why_without_};
  if (failure_) return Error{*failure_};
  lock.unlock();
  fail(Error{Code::remote, "rank 0 has left"});
  return Error{*failure()};
}

}  // namespace gyre::transport::bootstrap
