#include "engine/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "engine/in_flight.h"

namespace gyre::engine {
namespace {

using namespace std::chrono_literals;

// Ranks that have waited so long tell rank 0 in which call they are, so that calls that differ without ever meeting are found.
constexpr auto stall_time = 1s;
// They tell it again, so that what a rank has done since then is found too.
constexpr auto describe_every = 1500ms;
// How long rank 0 can take to find that a rank which has left had called something else.
constexpr auto left_time = 500ms;
// How long what a rank has sent can be on its way when word that it has left is here: they go by other connections.
constexpr auto under_way = 1s;
// And so often it is looked for then: whoever had no processor meanwhile has looked for nothing.
constexpr int last_looks = 3;
// How long a verdict of rank 0, or word of a rank's death, can take to get here.
constexpr auto verdict_time = 3s;
// Not an error: the peer may be computing, or stopped by a debugger. But somebody may be looking at the log.
constexpr auto long_time = 30s;

}  // namespace

void Executor::begin() {
  if (described_) bootstrap_.finished();
  described_.reset();
  warned_ = false;
  go_on();
}

Status Executor::run(Work& work) {
  if (described_) begin();
  if (const Error* failure = known()) [[unlikely]]
    return explain(*failure, work);
  if (work.move().done) return {};  // as a small call often is
  begin();
  Status status = drive(work);
  begin();  // nobody need wake it
  return status;
}

Status Executor::drive(Work& work) {
  for (;;) {
    const Work::Moved moved = GYRE_TRY(advance(work));
    if (moved.done) return {};
    if (moved.any)
      go_on();
    else
      rest(work);
  }
}

Result<Work::Moved> Executor::step(Work& work) {
  const Work::Moved moved = GYRE_TRY(advance(work));
  if (moved.any && !moved.done) begin();
  return moved;
}

const Error* Executor::known() const { return bootstrap_.attention() ? bootstrap_.failure() : nullptr; }

// What came before word of a failure may complete the work, so it is looked for before work is given up.
Result<Work::Moved> Executor::advance(Work& work) {
  const Error* const failure = known();
  if (failure != nullptr) [[unlikely]]
    progress();
  const Work::Moved moved = work.move();
  if (moved.done) return moved;
  if (failure != nullptr) [[unlikely]]
    return explain(*failure, work);
  if (moved.any)
    progress();
  else
    GYRE_TRY(look(work));
  return moved;
}

void Executor::go_on() {
  waiter_.reset();
  end_known_.reset();
  looked_since_ = 0;
  vain_ = {};
  counted_ = {};
}

void Executor::rest(const Work& work) {
  const bool others = InFlight::move_others();
  look_far_ |= waiter_.pause(work, others);
}

bool Executor::progress() {
  unsigned count = 0;
  for (transport::Worker* worker : workers_) count += worker->progress();
  return count != 0;
}

// Progress comes last, and work moves after it before anything is said of what it waits for, which may have come with that.
Status Executor::look(const Work& work) {
  if (work.stranger() >= 0 || (bootstrap_.attention() && bootstrap_.asked())) return settle(work);
  if (std::exchange(look_far_, false)) GYRE_TRY(stalled(work));
  if (progress()) waiter_.stir();
  return {};
}

// True: somebody who is awaited is gone, and what he had sent may still come.
bool Executor::may_still_come(const Work& work) {
  const bool broken = std::any_of(workers_.begin(), workers_.end(), [](transport::Worker* worker) { return worker->failure() != nullptr; });
  if (!broken) {
    if (waiter_.waited() < stall_time) return false;
    const auto awaited = work.awaited();
    if (std::none_of(awaited.begin(), awaited.end(), [&](Rank peer) { return bootstrap_.left(peer); })) return false;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!end_known_) end_known_ = now;
  if (!broken && now - *end_known_ < under_way) return true;
  return looked_since_++ < last_looks;
}

// An end that was known of when the last messages were looked for (may_still_come): who leaves between two looks is not blamed by this one.
Status Executor::ended(const Work& work) {
  for (transport::Worker* worker : workers_) {
    const Error* broken = worker->failure();
    if (broken == nullptr) continue;
    // A connection usually breaks because a rank is gone, and the watch over ranks knows more about that, or why it left.
    describe(work, false);
    const Error* failure = bootstrap_.wait_for_failure(verdict_time);
    if (failure == nullptr) bootstrap_.fail(*broken);
    return explain(failure != nullptr ? *failure : *broken, work);
  }
  for (const Rank peer : work.awaited()) {
    if (!bootstrap_.left(peer)) continue;
    describe(work, false);
    if (const Error* failure = bootstrap_.wait_for_failure(bootstrap_.left(0) ? 0ms : left_time)) return explain(*failure, work);
    const Error left{Code::remote, fmt::format("rank {} has left", peer)};
    bootstrap_.fail(left);
    return explain(left, work);
  }
  return {};
}

// Looked at now and then by a rank that has been waiting.
Status Executor::stalled(const Work& work) {
  if (may_still_come(work)) {
    look_far_ = true;
    return {};
  }
  if (end_known_) GYRE_TRY(ended(work));
  const auto now = std::chrono::steady_clock::now();
  if (work.waits_for_itself()) {
    counted_ = {};
  } else if (const auto limit = work.limit(); limit && is_late(*limit)) {
    return late(work, *limit);
  }
  if (waiter_.waited() < stall_time) return {};
  if (!described_ || now - *described_ >= describe_every) {
    describe(work, false);
    described_ = now;
  }
  if (waiter_.waited() > long_time && !warned_) {
    warned_ = true;
    log::warn("{}", explain({Code::timeout, "nothing has moved for a long time"}, work).what);
  }
  return {};
}

void Executor::describe(const Work& work, bool urgent) {
  const Work::Description d = work.description();
  bootstrap_.describe(d.call, d.plan, d.text, urgent, work.pairs());
}

// Time between two looks counts, but no more than an eighth of the limit at once: in between the caller may have been computing.
bool Executor::is_late(std::chrono::milliseconds limit) {
  const auto now = std::chrono::steady_clock::now();
  if (counted_ != decltype(counted_){}) vain_ += std::min<std::chrono::steady_clock::duration>(now - counted_, limit / 8);
  counted_ = now;
  return vain_ >= limit;
}

// The others learn of it, since none of them will get what it needs from this rank.
Error Executor::late(const Work& work, std::chrono::milliseconds limit) {
  const double seconds = static_cast<double>(limit.count()) / 1000;
  Error error = explain({Code::timeout, fmt::format("nothing has moved for {} s", seconds)}, work);
  bootstrap_.fail(error);
  return error;
}

// Calls differ, or rank 0 asks because they may: say in which call we are and wait for the verdict.
Error Executor::settle(const Work& work) {
  if (const auto wrong = work.wrong()) {
    // What can't be reached usually belongs to a rank that is gone, and the watch over ranks knows more about that.
    const Error* failure = wrong->code == Code::remote ? bootstrap_.wait_for_failure(left_time) : nullptr;
    if (failure != nullptr) return explain(*failure, work);
    bootstrap_.fail(*wrong);
    return explain(*wrong, work);
  }
  describe(work, !bootstrap_.asked());
  const Error* verdict = bootstrap_.wait_for_failure(verdict_time);
  if (verdict != nullptr) return explain(*verdict, work);
  const Error unknown{Code::invalid_usage, "a message of another call arrived, and rank 0 did not say whose"};
  bootstrap_.fail(unknown);
  return explain(unknown, work);
}

Error Executor::explain(const Error& cause, const Work& work) const {
  const Work::Description d = work.description();
  const auto peers = work.awaited();
  const std::string link = peers.empty() ? "" : fmt::format(", by {}", links_[static_cast<size_t>(peers[0])]);
  return Error{cause.code, fmt::format("{}; rank {} was in call {}, {}, waiting {}{}", cause.what, bootstrap_.rank(), d.call, d.text,
                                       work.where(), link)};
}

}  // namespace gyre::engine
