// Where ranks of this host meet that their launcher starts.
#pragma once
#include "base/unique.h"
#include "transport/bootstrap.h"

namespace gyre::transport {

/// Listens on a free port of 127.0.0.1 from before the ranks are started, so that no port is guessed.
struct Door {
  UniqueFd fd;
  uint16_t port = 0;

  /// How a rank joins through it, while it is open.
  Rendezvous rendezvous(Rank rank, int size) const;
};

Result<Door> open_door();

}  // namespace gyre::transport
