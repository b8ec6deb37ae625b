// Where ranks meet: a port that listens from before they are told of it, so that none is guessed.
#pragma once
#include <string>

#include "base/unique.h"
#include "transport/bootstrap.h"

namespace gyre::transport {

struct Door {
  UniqueFd fd;
  uint16_t port = 0;
  std::string host = "127.0.0.1";  ///< its addresses, with commas

  /// How a rank joins through it, while it is open.
  Rendezvous rendezvous(Rank rank, int size) const;
};

/// On 127.0.0.1, for ranks of this host.
Result<Door> open_door();
/// On all addresses of this host; named are those by which other hosts reach it, as NCCL_SOCKET_IFNAME and
/// NCCL_SOCKET_FAMILY choose among them, or the loopback's where there is no other network.
Result<Door> open_wide_door();

}  // namespace gyre::transport
