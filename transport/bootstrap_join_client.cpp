// The other ranks' half of the rendezvous: all addresses are tried at the same time, each as a small state machine (idle, connecting,
// awaiting the reply). So a stranger that holds one port and says nothing does not keep us from rank 0 at the next.
#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <utility>

#include "base/log.h"
#include "transport/bootstrap_join.h"
#include "transport/bootstrap_socket.h"
#include "transport/bootstrap_text.h"

namespace gyre::transport::bootstrap {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds first_pause{10};
constexpr milliseconds longest_pause{250};
/// Rank 0 started before us at the earliest when we did, so it may tell us who is missing a little later than our own limit.
constexpr milliseconds verdict_slack{1000};

/// Where the host is there, or no way to it: not that it says nothing, which one does whose listeners have too many guests.
bool nobody_listens(int error) {
  return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
}

int poll_ms(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count() + 1;
  return static_cast<int>(std::clamp<long>(left, 0, 60'000));
}

/// One address of rank 0.
class Attempt {
 public:
  explicit Attempt(Address address) : address_(address) {}

  int fd() const { return fd_.get(); }
  short events() const { return connecting_ ? POLLOUT : POLLIN; }
  Clock::time_point again_at() const { return again_at_; }
  const std::string& problem() const { return problem_; }
  bool refused() const { return refused_; }
  /// Since when nobody listens there, or has been reached.
  std::optional<Clock::time_point> closed_since() const { return closed_since_; }
  PrivateFd take_fd() { return std::move(fd_); }

  /// Goes as far as it can without waiting; rank 0's reply once it is here.
  std::optional<Reply> step(const Hello&);

 private:
  void start();
  void give_up(std::string problem);
  void not_connected(int error);

  Address address_;
  PrivateFd fd_;  ///< none: idle until again_at_
  bool connecting_ = false;
  std::string heard_;
  Clock::time_point again_at_{};
  milliseconds pause_ = first_pause;
  std::string problem_;
  bool refused_ = false;
  std::optional<Clock::time_point> closed_since_;
};

void Attempt::give_up(std::string problem) {
  fd_ = PrivateFd();
  problem_ = std::move(problem);
  again_at_ = Clock::now() + pause_;
  pause_ = std::min(pause_ * 2, longest_pause);
}

void Attempt::not_connected(int error) {
  refused_ = error == ECONNREFUSED;
  if (!nobody_listens(error))
    closed_since_.reset();
  else if (!closed_since_)
    closed_since_ = Clock::now();
  give_up(errno_text(error));
}

void Attempt::start() {
  heard_.clear();
  connecting_ = true;
  fd_ = PrivateFd(UniqueFd(::socket(address_.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (!fd_) return not_connected(errno);
  set_options(fd_.get());
  // Before rank 0 listens, the kernel may give this socket the very port that it asks for, which then is connected to itself. It must not
  // keep rank 0 from listening there, nor must what remains of it (TIME_WAIT).
  allow_reuse(fd_.get());
  const int rc = ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address_.storage), address_.length);
  if (rc != 0 && errno != EINPROGRESS && errno != EINTR) not_connected(errno);
}

std::optional<Reply> Attempt::step(const Hello& hello) {
  if (!fd_) {
    if (Clock::now() >= again_at_) start();
    if (!fd_) return std::nullopt;
  }
  if (connecting_) {
    pollfd writable{fd(), POLLOUT, 0};
    if (::poll(&writable, 1, 0) <= 0) return std::nullopt;
    int error = 0;
    socklen_t length = sizeof error;
    if (::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
    if (error == 0 && ::send(fd(), &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT) != ssize_t{sizeof hello}) error = errno;
    if (error != 0) return not_connected(error), std::nullopt;
    connecting_ = refused_ = false;
    closed_since_.reset();
    problem_ = "connected, but rank 0 does not answer";
  }
  Reply reply;
  std::array<char, sizeof reply> bytes;
  const ssize_t got = ::recv(fd(), bytes.data(), sizeof reply - heard_.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::nullopt;
  if (got <= 0) return give_up(got == 0 ? "the connection was closed" : errno_text(errno)), std::nullopt;
  heard_.append(bytes.data(), static_cast<size_t>(got));
  const size_t known = std::min(heard_.size(), reply.magic.size());
  if (!std::equal(reply.magic.begin(), reply.magic.begin() + static_cast<ptrdiff_t>(known), heard_.begin()))
    return give_up("another program listens there"), std::nullopt;
  if (heard_.size() < sizeof reply) return std::nullopt;
  std::memcpy(&reply, heard_.data(), sizeof reply);
  reply.process.host.back() = reply.text.back() = '\0';
  if (reply.answer == Answer::other_job) return give_up("another job's rank 0 listens there"), std::nullopt;
  return reply;
}

/// The reason worth telling: that a port is closed says least.
std::string reason(const std::vector<Attempt>& attempts) {
  std::string text;
  const std::string refused = errno_text(ECONNREFUSED);
  for (const Attempt& attempt : attempts) {
    if (attempt.problem().empty()) continue;
    if (text.empty() || text == refused) text = attempt.problem();
  }
  return text.empty() ? errno_text(ETIMEDOUT) : text;
}

/// Since when all addresses are closed, one of them by its host's word.
std::optional<Clock::time_point> closed_since(const std::vector<Attempt>& attempts) {
  Clock::time_point latest{};
  for (const Attempt& attempt : attempts) {
    if (!attempt.closed_since()) return std::nullopt;
    latest = std::max(latest, *attempt.closed_since());
  }
  const bool by_word = std::any_of(attempts.begin(), attempts.end(), [](const Attempt& attempt) { return attempt.refused(); });
  return by_word ? std::optional(latest) : std::nullopt;
}

/// Where nobody has listened for so long that rank 0 can't be there any more.
std::optional<Error> gone(const Rendezvous& rendezvous, const std::vector<Attempt>& attempts) {
  const auto since = rendezvous.gone_after.count() == 0 ? std::nullopt : closed_since(attempts);
  if (!since || Clock::now() - *since < rendezvous.gone_after) return std::nullopt;
  return Error{Code::remote,
               fmt::format("rank {}: nobody listens at {} any more ({}): rank 0's process is gone, waits for no more ranks, or never came",
                           rendezvous.rank, where(rendezvous), reason(attempts))};
}

Hello hello_of(const Rendezvous& rendezvous) {
  Hello hello;
  hello.rank = rendezvous.rank;
  hello.size = rendezvous.size;
  hello.job = rendezvous.job;
  hello.process = Process::self();
  if (::getrandom(&hello.nonce, sizeof hello.nonce, 0) < 0) hello.nonce = hello.process.pid;
  return hello;
}

Result<Joined> find_root(const Rendezvous& rendezvous, Clock::time_point deadline) {
  const Hello hello = hello_of(rendezvous);
  std::vector<Attempt> attempts;
  const std::vector<Address> candidates = GYRE_TRY(addresses(rendezvous));
  attempts.reserve(candidates.size());
  for (const Address& address : candidates) attempts.emplace_back(address);
  for (;;) {
    if (auto why = ended_early(rendezvous)) return *std::move(why);
    auto until = next_look(rendezvous, deadline);
    std::vector<pollfd> fds;
    for (Attempt& attempt : attempts) {
      if (const auto reply = attempt.step(hello)) {
        if (reply->answer == Answer::accepted) return Joined{Connection(attempt.take_fd()), reply->process, {}};
        return Error{Code::invalid_usage, reply->text.data()};
      }
      if (attempt.fd() >= 0)
        fds.push_back({attempt.fd(), attempt.events(), 0});
      else
        until = std::min(until, attempt.again_at());
    }
    if (auto why = gone(rendezvous, attempts)) return *std::move(why);
    if (Clock::now() >= deadline)
      return Error{Code::timeout, fmt::format("rank {}: no rendezvous at {} within {}: {}", rendezvous.rank, where(rendezvous),
                                              seconds_text(rendezvous.timeout), reason(attempts))};
    ::poll(fds.data(), fds.size(), poll_ms(until));
  }
}

Status wait_for_start(const Rendezvous& rendezvous, Joined& root) {
  const auto deadline = Clock::now() + rendezvous.timeout + verdict_slack;
  std::vector<Message> messages;
  while (Clock::now() < deadline) {
    if (auto why = ended_early(rendezvous)) return *std::move(why);
    pollfd readable{root.connection.fd(), POLLIN, 0};
    ::poll(&readable, 1, poll_ms(next_look(rendezvous, deadline)));
    const auto ended = root.connection.receive(messages);
    if (!messages.empty() && messages.front().kind == Kind::start) {
      root.early.assign(std::make_move_iterator(messages.begin() + 1), std::make_move_iterator(messages.end()));
      return {};
    }
    if (!messages.empty()) {  // rank 0 says why there will be no start
      std::string_view text = messages.front().payload;
      const auto code = take<uint32_t>(text);
      return Error{static_cast<Code>(code.value_or(static_cast<uint32_t>(Code::remote))), std::string(text)};
    }
    if (ended) return Error{Code::remote, fmt::format("{} died before all ranks had joined: {}", root.process.text(0), *ended)};
  }
  return Error{Code::timeout, fmt::format("rank {}: {} did not start the job within {}", rendezvous.rank, root.process.text(0),
                                          seconds_text(rendezvous.timeout))};
}

}  // namespace

Result<Joined> reach_root(const Rendezvous& rendezvous) {
  Joined root = GYRE_TRY(find_root(rendezvous, Clock::now() + rendezvous.timeout));
  GYRE_TRY(wait_for_start(rendezvous, root));
  return root;
}

}  // namespace gyre::transport::bootstrap
