// Where ranks of a job meet again, to form another job: each has a door of its own from the start, and all know all doors. So some can
// join anew though rank 0, where they met at first, is gone.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/bootstrap.h"
#include "transport/private_fd.h"

namespace gyre::transport {

class Reunion {
 public:
  /// Called by all ranks. `host`: equal for ranks that share loopback addresses.
  static Result<Reunion> open(Bootstrap&, const std::string& host);

  /// How this rank meets the others of `members`, ranks of the job in the order of their new numbers, this one among them. Those who name
  /// other members are refused, or are missing.
  Rendezvous rendezvous(std::span<const Rank> members, std::chrono::milliseconds timeout) const;
  /// The ranks whose door is open, this one among them: those whose communicator has not ended with its process or before. All are asked at
  /// the same time, but for those that were gone before; a host that does not answer within the limit is gone.
  std::vector<Rank> living(std::chrono::milliseconds limit);

 private:
  struct Card {
    std::string host;
    std::string addresses;  ///< with commas
    uint16_t port = 0;
    uint64_t job = 0;
  };
  Reunion(Rank rank, PrivateFd door, std::vector<Card> cards)
      : rank_(rank), door_(std::move(door)), cards_(std::move(cards)), gone_(cards_.size()) {}
  /// A meeting at that rank's door.
  Rendezvous at(Rank) const;

  Rank rank_;
  PrivateFd door_;
  std::vector<Card> cards_;  // by rank
  std::vector<bool> gone_;   // by rank, as far as known
};

}  // namespace gyre::transport
