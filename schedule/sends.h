// On which connections a schedule has a rank send, or receive: what memory for messages is divided among.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace gyre::schedule {

struct Sends {
  static constexpr uint32_t none = UINT32_MAX;

  std::vector<uint32_t> place;  ///< [channel * ranks + peer]: how many connections that it sends on come before this; none: it doesn't
  uint32_t count = 0;
};
/// `counts`: by rank, which peers do; empty: all.
Sends sends(const Schedule&, Rank, const std::vector<bool>& counts = {});
/// The same of those that it receives on.
Sends receives(const Schedule&, Rank);
/// Of the rank that sends on the most connections.
uint32_t most_sends(const Schedule&);
uint32_t most_receives(const Schedule&);

}  // namespace gyre::schedule
