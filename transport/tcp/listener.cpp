#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "transport/tcp/worker.h"

namespace gyre::transport::tcp {
namespace {

// Strangers that say nothing hold a descriptor each: so many at most, and so long. Who has the address greets at once.
constexpr size_t most_silent = 64;
constexpr std::chrono::seconds silence_limit{10}, limit_in_a_crowd{1};

// Errors of accept(2) that are of the connection, not of the listener.
bool of_a_stranger(int error) {
  constexpr int errors[] = {EINTR, ECONNABORTED, ENETDOWN, EPROTO, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH};
  return std::find(std::begin(errors), std::end(errors), error) != std::end(errors);
}

}  // namespace

TcpListener::TcpListener(TcpWorker& worker, std::vector<ListeningSocket> sockets) : worker_(worker), sockets_(std::move(sockets)) {
  fill_random(cookie_);
}

std::string TcpListener::address() const {
  Card card{cookie_, {}};
  for (const ListeningSocket& socket : sockets_) card.places.push_back(socket.address);
  return encode(card);
}

Status TcpListener::take_arrivals(std::chrono::steady_clock::time_point now) {
  for (const ListeningSocket& socket : sockets_) {
    while (arrivals_.size() < most_silent) {
      UniqueFd fd = accept_at(socket);
      if (!fd && of_a_stranger(errno)) continue;
      if (!fd && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (!fd) return Error{Code::system, fmt::format("tcp: accept4 at {}: {}", text_of(socket.address), errno_text(errno))};
      arrivals_.push_back({PrivateFd(std::move(fd)), now, {}, 0});
    }
  }
  return {};
}

// False: nothing more will come. More than a greeting is not read: it would be no peer's, who waits for the answer.
bool TcpListener::read(Arrival& arrival) const {
  char* const place = reinterpret_cast<char*>(&arrival.greeting);
  const ssize_t bytes = ::recv(arrival.fd.get(), place + arrival.bytes, sizeof arrival.greeting - arrival.bytes, MSG_DONTWAIT);
  if (bytes > 0) arrival.bytes += static_cast<size_t>(bytes);
  return bytes > 0 || (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

bool TcpListener::greeted(const Arrival& arrival) const {
  const Greeting& greeting = arrival.greeting;
  return greeting.magic == greeting_magic && greeting.hello_bytes <= most_hello_bytes && greeting.cookie == cookie_;
}

Result<std::unique_ptr<Endpoint>> TcpListener::accept() {
  const auto now = std::chrono::steady_clock::now();
  GYRE_TRY(take_arrivals(now));
  const auto limit = arrivals_.size() < most_silent ? silence_limit : limit_in_a_crowd;
  for (auto arrival = arrivals_.begin(); arrival != arrivals_.end();) {
    const bool open = read(*arrival);
    const bool complete = arrival->bytes == sizeof arrival->greeting;
    if (!complete && open && now - arrival->since < limit) {
      ++arrival;
      continue;
    }
    Arrival last = std::move(*arrival);
    arrival = arrivals_.erase(arrival);
    if (complete && greeted(last))
      return std::unique_ptr<Endpoint>(std::make_unique<TcpEndpoint>(worker_, std::move(last.fd), last.greeting));
  }
  return std::unique_ptr<Endpoint>();
}

}  // namespace gyre::transport::tcp
