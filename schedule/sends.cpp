#include "schedule/sends.h"

#include <algorithm>

namespace gyre::schedule {

Sends sends(const Schedule& schedule, Rank rank, const std::vector<bool>& counts) {
  const auto ranks = static_cast<size_t>(schedule.ranks);
  Sends out;
  out.place.assign(schedule.channels * ranks, Sends::none);
  for (uint32_t channel = 0; channel < schedule.channels; ++channel) {
    for (uint32_t strand = 0; strand < schedule.strands; ++strand) {
      for (const Step& step : schedule.program(rank, channel, strand).steps) {
        for (const Rank peer : schedule.peers(step.to)) {
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

uint32_t most_sends(const Schedule& schedule) {
  uint32_t most = 0;
  for (Rank rank = 0; rank < schedule.ranks; ++rank) most = std::max(most, sends(schedule, rank).count);
  return most;
}

}  // namespace gyre::schedule
