#include "transport/bootstrap_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "transport/bootstrap_text.h"

namespace gyre::transport::bootstrap {
namespace {

using Clock = Root::Clock;
using std::chrono::milliseconds;

/// When leaving: how long a peer may take nothing of what is queued for it (it may be stopped) …
constexpr milliseconds stalled_limit{1000};
/// … and how long it may take to end its side after that.
constexpr milliseconds end_limit{200};
constexpr milliseconds patient_check{1000};

}  // namespace

Result<std::unique_ptr<Watch>> Watch::start(Rank rank, std::vector<Joined> joined, Member& member) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) {
    const Error error{Code::system, fmt::format("rank {}: eventfd: {}", rank, errno_text(errno))};
    const auto message = std::make_shared<const Message>(failure_message(error.code, error.what));
    for (Joined& peer : joined) {
      peer.connection.send(message);
      peer.connection.flush();
    }
    return error;
  }
  return std::unique_ptr<Watch>(new Watch(rank, std::move(joined), member, std::move(wake)));
}

Watch::Watch(Rank rank, std::vector<Joined> joined, Member& member, UniqueFd wake)
    : member_(member), wake_(std::move(wake)), peers_(std::move(joined)) {
  if (rank == 0) {
    std::vector<std::string> names;
    for (size_t peer = 0; peer < peers_.size(); ++peer) names.push_back(peers_[peer].process.text(static_cast<Rank>(peer)));
    root_.emplace(std::move(names), [this](Rank to, const SharedMessage& message) {
      if (to == 0)
        own_.push_back(message);
      else
        peers_[static_cast<size_t>(to)].connection.send(message);
    });
  }
  thread_ = std::thread([this] { run(); });
}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(member_.history().message(0));
    posted_.push_back({Kind::goodbye, {}});
    leaving_ = true;
  }
  wake();
  thread_.join();
}

uint64_t Watch::post(Message message) {
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(message));
    number = ++given_;
  }
  wake();
  return number;
}

void Watch::tell(Message message, std::chrono::milliseconds limit) {
  const uint64_t own = post(std::move(message));
  std::unique_lock lock(mutex_);
  told_more_.wait_for(lock, limit, [&] { return told_ >= own; });
}

// A message from rank 0. Which calls were made is answered here, whatever this rank's other threads do.
void Watch::take(const Message& message) {
  if (message.kind != Kind::recall) return member_.take(message);
  std::string_view payload = message.payload;
  post(member_.history().message(bootstrap::take<uint64_t>(payload).value_or(0)));
}

void Watch::wake() {
  // Fails only when the count is at its limit, and then the thread is awake.
  [[maybe_unused]] const int rc = ::eventfd_write(wake_.get(), 1);
}

// The other ranks take the end of its connections for this one's. So short a word needs no memory.
void Watch::run() {
  try {
    serve();
  } catch (const std::bad_alloc&) {
    for (Joined& peer : peers_) peer.connection.close();
    member_.fail(Error{Code::system, "no memory left"});
  }
  const std::lock_guard lock(mutex_);
  told_ = UINT64_MAX;  // nobody waits for what is not sent any more
  told_more_.notify_all();
}

void Watch::serve() {
  const auto start = std::make_shared<const Message>(Message{Kind::start, {}});
  for (Joined& peer : peers_) {
    if (root_) peer.connection.send(start);
    for (const Message& message : std::exchange(peer.early, {})) take(message);
  }
  for (;;) {
    const bool last = take_posted();
    for (Joined& peer : peers_) peer.connection.flush();
    take_own();
    note_told();
    if (last) return leave();
    wait();
    for (size_t peer = 0; peer < peers_.size(); ++peer) receive(peer);
    if (root_) root_->tick(Clock::now());
  }
}

// True when goodbye was among them, which is the last.
bool Watch::take_posted() {
  std::vector<Message> posted;
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    posted.swap(posted_);
    taken_ = given_;
    last = leaving_;
  }
  for (Message& message : posted) {
    if (root_)
      root_->take(0, std::move(message), Clock::now());
    else
      peers_[0].connection.send(std::make_shared<const Message>(std::move(message)));
  }
  return last;
}

// What is for rank 0 itself comes last: its process may end when it hears of a failure, and the others are to hear of it too.
void Watch::take_own() {
  for (const SharedMessage& message : std::exchange(own_, {})) take(*message);
}

void Watch::note_told() {
  if (std::any_of(peers_.begin(), peers_.end(), [](const Joined& peer) { return peer.connection.has_unsent(); })) return;
  const std::lock_guard lock(mutex_);
  if (told_ == taken_) return;
  told_ = taken_;
  told_more_.notify_all();
}

void Watch::wait() {
  std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}};
  int timeout_ms = -1;
  for (Joined& peer : peers_) {
    if (peer.connection.patient()) timeout_ms = static_cast<int>(patient_check.count());
    fds.push_back({peer.connection.fd(), static_cast<short>(peer.connection.has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
  }
  if (const auto deadline = root_ ? root_->deadline() : std::nullopt) {
    const auto left = std::chrono::ceil<milliseconds>(*deadline - Clock::now()).count();
    timeout_ms = static_cast<int>(std::clamp<long>(left, 0, timeout_ms < 0 ? 60'000 : timeout_ms));
  }
  ::poll(fds.data(), fds.size(), timeout_ms);
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
}

void Watch::receive(size_t peer) {
  Connection& connection = peers_[peer].connection;
  if (!connection.open()) return;
  std::vector<Message> messages;
  const auto ended = connection.receive(messages);
  bool goodbye = false;
  for (Message& message : messages) {
    if (root_) {
      goodbye = goodbye || message.kind == Kind::goodbye;
      root_->take(static_cast<Rank>(peer), std::move(message), Clock::now());
    } else {
      take(message);
      goodbye = member_.left(0);
    }
  }
  if (!ended && !goodbye) return;
  connection.close();  // to one that waits in leave(), this is the end it waits for
  if (goodbye) return;
  if (root_)
    root_->closed(static_cast<Rank>(peer), *ended);
  else
    member_.fail(Error{Code::remote, fmt::format("{} is gone: {}", peers_[peer].process.text(0), *ended)});
}

// Closing a socket that holds unread bytes would make the kernel drop what we have sent; so each connection is read to its end, which
// the peer makes when it has read our goodbye.
void Watch::leave() {
  auto until = Clock::now() + stalled_limit;
  std::vector<bool> shut(peers_.size(), false);
  std::vector<Message> ignored;
  for (;;) {
    std::vector<pollfd> fds;
    for (size_t peer = 0; peer < peers_.size(); ++peer) {
      Connection& connection = peers_[peer].connection;
      if (!connection.open()) continue;
      if (connection.flush()) until = Clock::now() + stalled_limit;
      if (!connection.has_unsent() && !shut[peer]) {
        connection.shut_down();
        shut[peer] = true;
        until = Clock::now() + end_limit;
      }
      if (connection.receive(ignored))
        connection.close();
      else
        fds.push_back({connection.fd(), static_cast<short>(connection.has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
    }
    ignored.clear();
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    if (fds.empty() || left <= 0) return;
    ::poll(fds.data(), fds.size(), static_cast<int>(left));
  }
}

}  // namespace gyre::transport::bootstrap
