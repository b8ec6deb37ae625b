#include "transport/door.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <mutex>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "transport/bootstrap_socket.h"
#include "transport/bootstrap_text.h"
#include "transport/net_device.h"
#include "transport/net_filter.h"

namespace gyre::transport {
namespace {

Result<uint16_t> port_of(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return Error{Code::system, "the port of a listening socket: " + errno_text(errno)};
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// fe80::1%eth0: another host has another number for the link, or none.
bool of_one_link(const SocketAddress& address) {
  return address.bytes.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address.bytes).sin6_addr);
}

// The addresses of the interfaces that NCCL's variables choose, where they do; else all, and a loopback's only where there are no others.
// Ranks of one host meet whatever is chosen, so what fits nothing is no error here.
std::vector<NetMachine::Interface> chosen(std::vector<NetMachine::Interface> all) {
  const auto filter = NetFilter::from_environment();
  const std::string rules = interface_rules(filter);
  auto named = rules.empty() ? std::vector<NetMachine::Interface>() : choose_interfaces(all, filter);
  for (auto& interface : named) interface.loopback = false;  // asked for
  static std::once_flag said;
  if (!rules.empty() && named.empty())
    std::call_once(said, [&] { log::warn("no network interface fits {}: ranks meet at any of this host's", rules); });
  return named.empty() ? std::move(all) : named;
}

std::string own_addresses() {
  std::vector<std::string> outer, inner;
  const auto interfaces = read_interfaces();
  for (const auto& interface : interfaces ? chosen(*interfaces) : std::vector<NetMachine::Interface>()) {
    if (interface.running) (interface.loopback || of_one_link(interface.address) ? inner : outer).push_back(text(interface.address));
  }
  return fmt::format("{}", fmt::join(outer.empty() ? inner : outer, ","));
}

}  // namespace

Result<Door> open_door() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (!fd || ::bind(fd.get(), any, size) != 0 || ::listen(fd.get(), SOMAXCONN) != 0 || ::getsockname(fd.get(), any, &size) != 0) {
    return Error{Code::system, "cannot listen on 127.0.0.1: " + errno_text(errno)};
  }
  return Door{std::move(fd), ntohs(address.sin_port)};
}

Result<Door> open_wide_door() {
  auto fd = GYRE_TRY(bootstrap::listen({}));
  const uint16_t port = GYRE_TRY(port_of(fd.get()));
  return Door{std::move(fd), port, own_addresses()};
}

Rendezvous Door::rendezvous(Rank rank, int size) const {
  Rendezvous at;
  at.rank = rank;
  at.size = size;
  at.host = host;
  at.port = port;
  if (rank == 0) at.listen_fd = fd.get();
  return at;
}

}  // namespace gyre::transport
