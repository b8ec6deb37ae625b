#include "engine/in_flight.h"

namespace gyre::engine {
namespace {

/// Those of all communicators that have ever begun an operation.
struct All {
  std::mutex mutex;
  std::vector<InFlight*> list;
  std::atomic<size_t> size{0};
};

All& all() {
  static All* const one = new All;  // never destroyed: threads may wait while the process ends
  return *one;
}

}  // namespace

InFlight::~InFlight() {
  if (!listed_) return;
  const std::lock_guard lock(all().mutex);
  std::erase(all().list, this);
  all().size = all().list.size();
}

void InFlight::add(Operation operation) {
  operations_.push_back(std::move(operation));
  ++begun_;
  if (listed_) return;
  listed_ = true;
  const std::lock_guard lock(all().mutex);
  all().list.push_back(this);
  all().size = all().list.size();
}

void InFlight::bind_front() {
  bound_ = true;
  const Operation& next = operations_.front();
  if (next.bound != nullptr) return;
  if (next.planned != nullptr) {
    collective_.bind(*next.planned, next.call, next.buffers, next.limit);
  } else {
    batch_.bind(next.transfers, next.call.number, next.limit);
  }
}

Work::Moved InFlight::move() {
  bool any = false;
  for (bool more = !operations_.empty(); more;) {
    if (!bound_) bind_front();
    const Moved now = front().move();
    if (!now.done) return {any || now.any, false};
    any = true;
    bound_ = false;
    operations_.pop_front();
    more = !operations_.empty();
    ended_.fetch_add(1, std::memory_order_release);  // of the last one: all is the owner's again
  }
  return {any, true};
}

TimeLimit InFlight::limit() const {
  TimeLimit least;
  uint64_t number = ended();
  for (const Operation& operation : operations_) {
    if (number++ >= asked_) break;
    if (operation.limit && (!least || *operation.limit < *least)) least = operation.limit;
  }
  return least;
}

bool InFlight::move_others() {
  All& every = all();
  if (every.size.load(std::memory_order_relaxed) == 0) return false;
  const std::unique_lock listing(every.mutex, std::try_to_lock);
  if (!listing.owns_lock()) return true;  // another thread moves them
  bool any = false;
  for (InFlight* one : every.list) {
    const auto attended = [one] { return one->attended_.load(std::memory_order_relaxed) != 0; };
    if (attended()) continue;
    const std::unique_lock lock(one->mutex_, std::try_to_lock);
    if (!lock.owns_lock() || attended() || one->operations_.empty()) continue;  // it may be since
    any = true;
    for (transport::Worker* worker : one->workers_) worker->progress();
    one->move();  // last: whoever sees its end may go on without the lock
  }
  return any;
}

}  // namespace gyre::engine
