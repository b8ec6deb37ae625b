#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "transport/tcp/worker.h"

namespace gyre::transport::tcp {
namespace {

// An address without an answer may be one that only the listener's host has; then the next may do.
constexpr std::chrono::seconds address_limit{3};
constexpr std::chrono::milliseconds goodbye_limit{1000};

bool later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

void set_buffers(int fd, int bytes) {
  if (bytes == 0) return;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

}  // namespace

std::string peer_of(int fd) {
  SocketAddress from;
  from.length = sizeof from.bytes;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(&from.bytes), &from.length) == 0 ? text_of(from) : "?";
}

TcpEndpoint::TcpEndpoint(TcpWorker& worker, Card card, std::string_view hello) : worker_(worker), card_(std::move(card)), hello_(hello) {
  try_next();
}

TcpEndpoint::TcpEndpoint(TcpWorker& worker, PrivateFd fd, const Greeting& greeting)
    : worker_(worker), hello_(greeting.hello, greeting.hello_bytes), peer_(peer_of(fd.get())), fd_(std::move(fd)) {
  watch_host(fd_.get(), worker.options().silence);
  set_buffers(fd_.get(), worker.options().buffer_bytes);
  const Answer answer{answer_magic, worker.slots().bytes, worker.slots().credits, 0};
  if (::send(fd_.get(), &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof answer) {
    settle({greeting.credits, greeting.slot_bytes});
  } else {
    (void)fail({Code::remote, fmt::format("tcp: answering {}: {}", peer_, errno_text(errno))});
  }
}

TcpEndpoint::~TcpEndpoint() {
  if (fifo_ && !worker_.abandoned()) fifo_->say_goodbye(goodbye_limit);
}

void TcpEndpoint::break_off(const char* reason) {
  if (fifo_) fifo_->break_off(reason);
  fd_ = PrivateFd();
  (void)fail({Code::remote, reason});
}

Result<bool> TcpEndpoint::fail(Error error) {
  state_ = State::failed;
  if (!error_) error_ = std::move(error);
  return *error_;
}

// Places that can't even be tried are passed over at once.
void TcpEndpoint::try_next() {
  state_ = State::connects;
  answered_ = 0;
  for (; place_ < card_.places.size(); ++place_) {
    peer_ = text_of(card_.places[place_]);
    auto started = start_connecting(card_.places[place_], worker_.options().silence);
    if (started) {
      fd_ = *std::move(started);
      set_buffers(fd_.get(), worker_.options().buffer_bytes);
      since_ = std::chrono::steady_clock::now();
      return;
    }
    tried_ += fmt::format("{}{}: {}", tried_.empty() ? "" : "; ", peer_, started.error().what);
  }
  (void)fail({Code::remote, "tcp: connecting to " + tried_});
}

void TcpEndpoint::give_up(const std::string& why) {
  tried_ += fmt::format("{}{}: {}", tried_.empty() ? "" : "; ", peer_, why);
  fd_ = PrivateFd();
  ++place_;
  try_next();
}

Result<bool> TcpEndpoint::ready() {
  if (state_ == State::connects) greet();
  if (state_ == State::awaits_answer) take_answer();
  if (state_ == State::failed) return *error_;
  if (state_ == State::connected) return true;
  if (std::chrono::steady_clock::now() - since_ > address_limit && place_ + 1 < card_.places.size()) give_up("no answer");
  return false;
}

void TcpEndpoint::greet() {
  pollfd waits{fd_.get(), POLLOUT, 0};
  if (::poll(&waits, 1, 0) <= 0) return;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return give_up(errno_text(error));
  Greeting greeting;
  greeting.magic = greeting_magic;
  greeting.cookie = card_.cookie;
  greeting.slot_bytes = worker_.slots().bytes;
  greeting.credits = worker_.slots().credits;
  greeting.hello_bytes = static_cast<uint32_t>(hello_.size());
  hello_.copy(greeting.hello, sizeof greeting.hello);
  // An empty socket takes so few bytes at once.
  if (::send(fd_.get(), &greeting, sizeof greeting, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof greeting) return give_up(errno_text(errno));
  state_ = State::awaits_answer;
}

// No more than the answer is taken: what follows are messages.
void TcpEndpoint::take_answer() {
  const ssize_t bytes = ::recv(fd_.get(), reinterpret_cast<char*>(&answer_) + answered_, sizeof answer_ - answered_, MSG_DONTWAIT);
  if (bytes < 0 && later(errno)) return;
  if (bytes < 0) return give_up(errno_text(errno));
  if (bytes == 0) return give_up("whoever listens there closed the connection");
  answered_ += static_cast<size_t>(bytes);
  if (answered_ < sizeof answer_) return;
  if (answer_.magic != answer_magic) return give_up("the answer is not that of a tcp listener of gyre's");
  settle({answer_.credits, answer_.slot_bytes});
}

void TcpEndpoint::settle(const Slots& peer) {
  const Slots& own = worker_.slots();
  if (own.credits != peer.credits || own.bytes != peer.bytes) {
    (void)fail({Code::invalid_usage, fmt::format("tcp: {} credits of {} bytes here, but {} of {} at {}", own.credits, own.bytes,
                                                 peer.credits, peer.bytes, peer_)});
    return;
  }
  bound_bytes_under_way(fd_.get(), own.credits * (own.bytes + sizeof(Header)), worker_.options().buffer_bytes == 0);
  acknowledge_every_second(fd_.get());
  fifo_ = std::make_unique<TcpFifo>(std::move(fd_), own, peer_, worker_.traffic());
  state_ = State::connected;
}

}  // namespace gyre::transport::tcp
