#include "transport/control.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/hash.h"
#include "base/text.h"

namespace gyre::transport {
namespace {

constexpr uint32_t frame_magic = 0x314e5947;  // "GYN1"

struct FrameHeader {
  uint32_t magic, kind, bytes;
};

void set_option(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); }

// Also while something is under way, which is a little only.
void watch_peer(int fd, std::chrono::seconds silence) {
  watch_host(fd, silence);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (static_cast<int>(silence.count()) - 1) * 1000);
}

bool later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == EINPROGRESS || error == EALREADY; }

std::string text_of_port(in_port_t port) { return port == 0 ? "" : fmt::format(":{}", ntohs(port)); }

}  // namespace

void watch_host(int fd, std::chrono::seconds silence) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, std::clamp(static_cast<int>(silence.count()) - 2, 1, 127));
}

Control::Control(UniqueFd fd, std::chrono::seconds silence) : fd_(std::move(fd)), connected_(true) {
  watch_peer(fd_.get(), silence);
  SocketAddress from;
  from.length = sizeof from.bytes;
  if (::getpeername(fd_.get(), reinterpret_cast<sockaddr*>(&from.bytes), &from.length) == 0) peer_ = text_of(from);
}

Control Control::to(const SocketAddress& address, std::chrono::seconds silence) {
  Control control;
  control.peer_ = text_of(address);
  control.fd_ = PrivateFd(UniqueFd(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (!control.fd_) {
    control.end("socket: " + errno_text(errno));
    return control;
  }
  watch_peer(control.fd_.get(), silence);
  if (::connect(control.fd_.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.length) != 0 && !later(errno)) {
    control.end(errno);
  }
  return control;
}

void Control::send(uint32_t kind, std::string_view bytes) {
  const FrameHeader header{frame_magic, kind, static_cast<uint32_t>(bytes.size())};
  std::array<char, sizeof header> start;
  std::memcpy(start.data(), &header, sizeof header);
  out_.append(start.data(), start.size()).append(bytes);
  flush();
}

void Control::end(int error) {
  if (!ended_.empty()) return;
  refused_ = !connected_ && error == ECONNREFUSED;
  // A reset, too, may come from a host that has given the connection up for lack of answers.
  silent_ = connected_ && (error == ECONNRESET || error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH ||
                           error == ENETDOWN || error == EHOSTDOWN);
  end(errno_text(error));
}

void Control::hang_up() {
  if (fd_) ::shutdown(fd_.get(), SHUT_WR);
}

void Control::flush() {
  if (!ended_.empty() || (out_.empty() && connected_)) return;
  const ssize_t count = ::send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count >= 0) {
    connected_ = connected_ || count > 0;
    out_.erase(0, static_cast<size_t>(count));
  } else if (!later(errno) && errno != ENOTCONN) {
    end(errno);
  }
}

void Control::read() {
  std::array<char, 16 * 1024> bytes;
  while (ended_.empty() && in_.size() < sizeof(FrameHeader) + max_frame_bytes) {
    const ssize_t count = ::recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count > 0) {
      in_.append(bytes.data(), static_cast<size_t>(count));
    } else if (count == 0) {
      end("its process or host closed the connection");
    } else {
      if (!later(errno) && errno != ENOTCONN) end(errno);
      return;
    }
  }
}

std::optional<Frame> Control::receive() {
  flush();
  if (fd_) read();
  FrameHeader header;
  const uint32_t expected = frame_magic;
  const size_t compared = std::min(in_.size(), sizeof expected);
  if (compared > 0 && std::memcmp(in_.data(), &expected, compared) != 0) stranger_ = true;
  if (!stranger_ && in_.size() >= sizeof header) {
    std::memcpy(&header, in_.data(), sizeof header);
    stranger_ = header.bytes > max_frame_bytes;
    if (!stranger_ && in_.size() - sizeof header >= header.bytes) {
      Frame frame{header.kind, in_.substr(sizeof header, header.bytes)};
      in_.erase(0, sizeof header + header.bytes);
      return frame;
    }
  }
  if (stranger_) end("it sent what is no frame of gyre's");
  return std::nullopt;
}

Result<ListeningSocket> listen_at(const SocketAddress& address) {
  ListeningSocket listening{PrivateFd(UniqueFd(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))), address};
  auto* place = reinterpret_cast<sockaddr*>(&listening.address.bytes);
  const int fd = listening.fd.get();
  const bool ready = fd >= 0 && ::bind(fd, place, address.length) == 0 && ::listen(fd, SOMAXCONN) == 0 &&
                     ::getsockname(fd, place, &listening.address.length) == 0;
  if (!ready) return Error{Code::system, fmt::format("{}: {}", text_of(address), errno_text(errno))};
  return listening;
}

UniqueFd accept_at(const ListeningSocket& listening) {
  return UniqueFd(::accept4(listening.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

std::string text_of(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.bytes.ss_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address.bytes, sizeof v6);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    const std::string scope = v6.sin6_scope_id == 0 ? "" : fmt::format("%{}", v6.sin6_scope_id);
    return fmt::format("[{}{}]{}", text, scope, text_of_port(v6.sin6_port));
  }
  sockaddr_in v4;
  std::memcpy(&v4, &address.bytes, sizeof v4);
  inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  return fmt::format("{}{}", text, text_of_port(v4.sin_port));
}

void fill_random(std::span<char> bytes) {
  if (getrandom(bytes.data(), bytes.size(), GRND_NONBLOCK) == static_cast<ssize_t>(bytes.size())) return;
  // Early at boot only. Against accidents this is as good.
  auto state =
      static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^ reinterpret_cast<uintptr_t>(bytes.data());
  for (char& byte : bytes) byte = static_cast<char>(state = mix(state + 1));
}

uint64_t random_number() {
  std::array<char, 8> bytes;
  fill_random(bytes);
  uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number | 1;
}

}  // namespace gyre::transport
