#include "plugin/group.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>

#include "base/log.h"
#include "plugin/comm.h"
#include "plugin/process.h"

namespace gyre::plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds look_interval{10};
constexpr milliseconds farewell_limit{1000};

}  // namespace

Group::Group(Process& process, GroupKey k, std::vector<transport::NetDevice> members)
    : key(k),
      process_(process),
      members_(std::move(members)),
      identity_(Identity::self(members_.front().name, process.tuner_file())),
      ways_(process.provider().ways(members_)),
      watch_(::epoll_create1(EPOLL_CLOEXEC)) {}

Group::~Group() {
  process_.remove(*this);  // nobody else comes any more
  const auto end = steady_clock::now() + farewell_limit;
  while (bury(), !retired_.empty() && steady_clock::now() < end) {
    progress();
    process_.progress_others(*this);  // in which the other end may be
    std::this_thread::yield();
  }
  for (const auto& worker : workers_)
    if (worker) worker->abandon();
}

std::string Group::device_name() const {
  std::string name;
  for (const auto& member : members_) name += (name.empty() ? "" : "+") + member.name;
  return name;
}

std::string_view Group::name_of(WayKind kind) const {
  const auto found = std::find_if(ways_.begin(), ways_.end(), [&](const Way& way) { return way.kind == kind; });
  return found == ways_.end() ? "?" : std::string_view(found->name);
}

std::string Group::why(WayKind kind) const {
  const auto found = std::find_if(ways_.begin(), ways_.end(), [&](const Way& way) { return way.kind == kind; });
  return found == ways_.end() || found->why.empty() ? "" : ": " + found->why;
}

Result<transport::Worker*> Group::worker(WayKind kind) {
  auto& worker = workers_[static_cast<size_t>(kind)];
  if (!worker) {
    worker = GYRE_TRY(process_.provider().open(members_, kind));
    opened_.push_back(worker.get());
  }
  return worker.get();
}

void Group::hand_over() {
  std::erase_if(waiting_, [](Comm* comm) { return comm->hand_over(); });
}

void Group::watch(Comm& comm) {
  comms_.push_back(&comm);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.ptr = &comm;
  if (::epoll_ctl(watch_.get(), EPOLL_CTL_ADD, comm.watched_fd(), &event) != 0)
    log::warn("the death of {} would not be noticed at once: epoll_ctl: {}", comm.peer(), errno);
}

void Group::unwatch(Comm& comm) { ::epoll_ctl(watch_.get(), EPOLL_CTL_DEL, comm.watched_fd(), nullptr); }

void Group::forget(Comm& comm) {
  unwatch(comm);
  std::erase(comms_, &comm);
  std::erase(waiting_, &comm);
}

void Group::look_around() {
  process_.progress_others(*this);
  const auto now = steady_clock::now();
  if (now - looked_ < look_interval) return;
  looked_ = now;
  look_at_peers();
  for (Comm* comm : comms_) comm->look_after(now);
  bury();
}

void Group::look_at_peers() {
  std::array<epoll_event, 16> events;
  const int count = ::epoll_wait(watch_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) static_cast<Comm*>(events[static_cast<size_t>(i)].data.ptr)->look();
}

void Group::bury() {
  std::erase_if(retired_, [](const auto& endpoint) { return endpoint->closed(); });
}

}  // namespace gyre::plugin
