#include "transport/door.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "transport/bootstrap_text.h"

namespace gyre::transport {

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

Rendezvous Door::rendezvous(Rank rank, int size) const {
  Rendezvous at;
  at.rank = rank;
  at.size = size;
  at.port = port;
  if (rank == 0) at.listen_fd = fd.get();
  return at;
}

}  // namespace gyre::transport
