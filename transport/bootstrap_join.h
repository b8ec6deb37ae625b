// How ranks find rank 0 and rank 0 tells them from strangers. Both sides serve all their connections at once, so that nobody who is
// silent, slow or somebody else delays the others.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/bootstrap.h"
#include "transport/bootstrap_wire.h"

namespace gyre::transport::bootstrap {

/// The other end of a connection.
struct Joined {
  Connection connection;
  Process process;
  std::vector<Message> early;  ///< what rank 0 said right after the start
};

/// Rank 0: waits for all the others. By rank; the first has no connection and our own process.
Result<std::vector<Joined>> gather_ranks(const Rendezvous&);
/// Another rank: finds rank 0 at one of the addresses and waits until all have joined.
Result<Joined> reach_root(const Rendezvous&);

/// Why this rank is to wait for others no longer.
inline std::optional<Error> ended_early(const Rendezvous& rendezvous) {
  if (rendezvous.cancelled != nullptr && rendezvous.cancelled->load())
    return Error{Code::remote, "rank " + std::to_string(rendezvous.rank) + " gave up while ranks joined: it was told to"};
  const Error* failure = rendezvous.of != nullptr ? rendezvous.of->failure() : nullptr;
  return failure != nullptr ? std::optional(*failure) : std::nullopt;
}
/// Until when to wait at most before ended_early() is to be asked again.
inline std::chrono::steady_clock::time_point next_look(const Rendezvous& rendezvous, std::chrono::steady_clock::time_point until) {
  const bool may_end_early = rendezvous.cancelled != nullptr || rendezvous.of != nullptr;
  return may_end_early ? std::min(until, std::chrono::steady_clock::now() + std::chrono::milliseconds(50)) : until;
}

}  // namespace gyre::transport::bootstrap
