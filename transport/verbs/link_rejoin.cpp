// Paths that have failed are tried again, for ever: wire.h says how. And paths that nobody uses are asked now and then, when nothing else
// would tell that the peer is gone.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "transport/verbs/link.h"

namespace gyre::transport::verbs {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds first_wait{100}, longest_wait{10000};
constexpr std::chrono::seconds good_while{10};  // after which a path's failure has nothing to do with its last one
constexpr std::chrono::seconds probe_interval{1};
constexpr std::chrono::seconds drain_limit{10};

/// Until a device must have said that nobody answers: InfiniBand's specification lets it wait for an acknowledgement up to four times the
/// timeout, for each time that a packet is sent. Zero: for ever.
milliseconds answer_limit(const PathOptions& options) {
  constexpr double unit_ms = 4.096e-3;
  if (options.timeout == 0) return milliseconds(0);
  return milliseconds(static_cast<int64_t>(4 * unit_ms * static_cast<double>(uint64_t{1} << options.timeout) * (1 + options.retries)));
}

}  // namespace

void Link::wait_for(uint8_t path) {
  Retry& retry = retry_[path];
  const auto now = Clock::now();
  const bool again = retry.wait.count() > 0 && now - retry.failed_at < retry.wait + good_while;
  retry.wait = again ? std::min(2 * retry.wait, longest_wait) : first_wait;
  retry.failed_at = now;
  retry.at = now + retry.wait;
}

void Link::retry_at_once() {
  for (Retry& retry : retry_) {
    retry.at = {};
    retry.wait = {};
  }
}

// When what failed last was taken up at both ends, nothing of it is left that could be mistaken.
void Link::rejoin(bool on_time) {
  for (auto& path : paths_) {
    if (failure_) return;
    const uint8_t index = path->index();
    const PathNews& peer = peer_said_.paths[index];
    const uint32_t next = failed_[index] + 1;
    if (taken_[index] != failed_[index] || peer.failed != failed_[index]) continue;
    const bool due = on_time && Clock::now() >= retry_[index].at;
    if (path->out() && (due || peer.offered == next)) {
      auto made = Path::open(*this, path->rail(), path->place(), next);
      if (!made) {
        log::info("a path to {} can't be tried again yet: {}", peer_, made.error().what);
        wait_for(index);
        continue;
      }
      path = *std::move(made);
      unsaid_ = true;
    }
    if (path->state() == Path::State::offered && peer.offered == path->generation()) {
      if (const auto joined = path->join(peer.card); !joined) {
        lose(*path, joined.error());
        continue;
      }
      unsaid_ = true;
    }
    if (path->state() == Path::State::joined && peer.joined == path->generation() && path->quiet()) probe(*path);
  }
}

// An empty write needs no memory.
void Link::probe(Path& path) { (void)posted(path, path.write_signaled({}, {}), "ibv_post_send"); }

void Link::probe_done(Path& path) {
  path.start();
  count_paths();
  log::info("a path to {} is back on {}, as number {}: {} of {} carry", peer_, path.rail().name(), path.generation(), alive(),
            paths_.size());
}

// A device may lose a probe and say nothing of it; both ends would wait for ever.
bool Link::tried_too_long(Clock::time_point now) {
  if (alive() > 0 || has_detour() || !trying())
    none_since_ = {};
  else if (none_since_ == Clock::time_point())
    none_since_ = now;
  const milliseconds limit = answer_limit(rails_.front()->options());
  return none_since_ != Clock::time_point() && limit.count() > 0 && now - none_since_ > limit + drain_limit;
}

void Link::tick(Clock::time_point now, bool watch_paths) {
  if (failure_) return;
  if (tried_too_long(now))
    return fail(
        {Code::remote, fmt::format("{}: no path is left, and of those that were tried no device has said whether they carry", peer_)});
  for (const auto& path : paths_)
    if (path->state() == Path::State::failed && !path->out() && now - retry_[path->index()].failed_at > drain_limit)
      return fail({Code::system,
                   fmt::format("{}: a queue pair to {} that has failed does not return what was under way", path->rail().name(), peer_)});
  rejoin(true);
  watch_detour(now);
  if (unsaid_) recover();
  if (!watch_paths || now - probed_ < probe_interval) return;
  probed_ = now;
  for (const auto& path : paths_)
    if (path->alive() && path->quiet() && path->has_room()) probe(*path);
}

bool Link::say_goodbye() {
  if (failure_) return true;
  if (!goodbye_) {
    goodbye_ = true;
    unsaid_ = true;
  }
  return catch_up();
}

}  // namespace gyre::transport::verbs
