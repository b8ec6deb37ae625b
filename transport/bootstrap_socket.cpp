#include "transport/bootstrap_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "transport/bootstrap_text.h"

namespace gyre::transport::bootstrap {
namespace {

// A connection without data is probed after 1 s, every second; the third probe without an answer ends it: 4 s. The kernel answers
// probes for a stopped process.
constexpr int keepalive_idle_s = 1;
constexpr int keepalive_interval_s = 1;
constexpr int keepalive_count = 3;
constexpr int unacknowledged_limit_ms = 4000;

void set(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); }

// An empty owner and errno when it can't be had.
UniqueFd bound(int family, uint16_t port) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  allow_reuse(fd.get());
  sockaddr_storage any{};
  socklen_t length = sizeof(sockaddr_in);
  if (family == AF_INET6) {
    set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    sockaddr_in6 any6{};
    any6.sin6_family = AF_INET6;
    any6.sin6_port = htons(port);
    std::memcpy(&any, &any6, length = sizeof any6);
  } else {
    sockaddr_in any4{};
    any4.sin_family = AF_INET;
    any4.sin_port = htons(port);
    std::memcpy(&any, &any4, sizeof any4);
  }
  const bool listening = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), length) == 0 && ::listen(fd.get(), SOMAXCONN) == 0;
  const int error = errno;
  if (listening) return fd;
  fd = UniqueFd();
  errno = error;
  return fd;
}

// Appends the addresses; what is wrong, or nothing.
std::string resolve(const std::string& host, const std::string& port, std::vector<Address>& all) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  // A bare container may have no /etc/hosts, but this name means loopback whatever the resolver knows (RFC 6761).
  if (error != 0 && host == "localhost") error = ::getaddrinfo("127.0.0.1", port.c_str(), &hints, &found);
  if (error != 0) return error == EAI_SYSTEM ? errno_text(errno) : ::gai_strerror(error);
  const Unique<addrinfo, ::freeaddrinfo> owner(found);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Address& address = all.emplace_back();
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.length = one->ai_addrlen;
  }
  return {};
}

}  // namespace

std::string where(const Rendezvous& rendezvous) {
  const bool colons = rendezvous.host.find(':') != std::string::npos;
  std::string text = fmt::format("{}{}{}:{}", colons ? "[" : "", rendezvous.host, colons ? "]" : "", rendezvous.port);
  if (rendezvous.ports > 1) text += fmt::format("-{}", rendezvous.port + rendezvous.ports - 1);
  return text;
}

Result<std::vector<Address>> addresses(const Rendezvous& rendezvous) {
  std::vector<Address> all;
  std::string wrong;
  for (size_t begin = 0; begin <= rendezvous.host.size();) {
    const size_t end = std::min(rendezvous.host.find(',', begin), rendezvous.host.size());
    const std::string host = rendezvous.host.substr(begin, end - begin);
    begin = end + 1;
    for (int i = 0; i < rendezvous.ports; ++i) {
      const std::string problem = resolve(host, std::to_string(rendezvous.port + i), all);
      if (!problem.empty()) wrong = fmt::format("cannot resolve {}: {}", host, problem);
    }
  }
  if (all.empty()) return Error{Code::system, fmt::format("rank {}: {}", rendezvous.rank, wrong)};
  return all;
}

Result<UniqueFd> listen(const Rendezvous& rendezvous) {
  int error = 0;
  for (int i = 0; i < rendezvous.ports; ++i) {
    const auto port = static_cast<uint16_t>(rendezvous.port + i);
    UniqueFd fd = bound(AF_INET6, port);                                           // takes IPv4 connections too
    if (!fd && errno != EADDRINUSE && errno != EACCES) fd = bound(AF_INET, port);  // a kernel without IPv6
    if (fd) return fd;
    error = errno;
  }
  return Error{Code::system, fmt::format("rank {}: cannot listen on {}: {}", rendezvous.rank, where(rendezvous), errno_text(error))};
}

void allow_reuse(int fd) { set(fd, SOL_SOCKET, SO_REUSEADDR, 1); }

void set_options(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, keepalive_idle_s);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, keepalive_interval_s);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, keepalive_count);
  limit_silence(fd, true);
}

void limit_silence(int fd, bool limited) { set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, limited ? unacknowledged_limit_ms : 0); }

}  // namespace gyre::transport::bootstrap
