// The sockets of the bootstrap: addresses, listening, and the options that make a vanished host known within five seconds.
// All are non-blocking and closed on exec. IPv4 and IPv6.
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique.h"
#include "transport/bootstrap.h"

namespace gyre::transport::bootstrap {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

/// "host:29500", "[::1]:29500", or "host:29501-29508" when there are several ports.
std::string where(const Rendezvous&);
/// All addresses that `host` has, each with every port of the rendezvous.
Result<std::vector<Address>> addresses(const Rendezvous&);
/// Listens on all addresses of this host, at the first free port of the rendezvous.
Result<UniqueFd> listen(const Rendezvous&);

/// Whoever allows reuse too may listen at this socket's port.
void allow_reuse(int fd);
/// No delay, keepalive, and the limit below.
void set_options(int fd);
/// Whether data that is not acknowledged for four seconds ends the connection.
void limit_silence(int fd, bool limited);

}  // namespace gyre::transport::bootstrap
