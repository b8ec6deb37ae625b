#include "schedule/sends.h"

#include <algorithm>

namespace gyre::schedule {
namespace {

Sends connections(const Schedule& schedule, Rank rank, Peers Step::*peers, const std::vector<bool>& counts) {
  const auto ranks = static_cast<size_t>(schedule.ranks);
  Sends out;
  out.place.assign(schedule.channels * ranks, Sends::none);
  for (uint32_t channel = 0; channel < schedule.channels; ++channel) {
    for (uint32_t strand = 0; strand < schedule.strands; ++strand) {
      for (const Step& step : schedule.program(rank, channel, strand).steps) {
        for (const Rank peer : schedule.peers(step.*peers)) {
          if (counts.empty() || counts[static_cast<size_t>(peer)]) out.place[channel * ranks + static_cast<size_t>(peer)] = 0;
        }
      }
    }
  }
  for (uint32_t& place : out.place) {
    if (place != Sends::none) place = out.count++;
  }
  return out;
}

uint32_t most(const Schedule& schedule, Peers Step::*peers) {
  uint32_t most = 0;
  for (Rank rank = 0; rank < schedule.ranks; ++rank) most = std::max(most, connections(schedule, rank, peers, {}).count);
  return most;
}

}  // namespace

Sends sends(const Schedule& schedule, Rank rank, const std::vector<bool>& counts) { return connections(schedule, rank, &Step::to, counts); }

Sends receives(const Schedule& schedule, Rank rank) { return connections(schedule, rank, &Step::from, {}); }

uint32_t most_sends(const Schedule& schedule) { return most(schedule, &Step::to); }

uint32_t most_receives(const Schedule& schedule) { return most(schedule, &Step::from); }

}  // namespace gyre::schedule
