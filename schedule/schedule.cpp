#include "schedule/schedule.h"

#include <algorithm>

namespace gyre::schedule {

uint32_t Schedule::longest_message() const {
  uint32_t longest = 1;
  for (const Program& p : programs) {
    for (const Step& step : p.steps) longest = std::max({longest, step.src.count, step.dst.count});
  }
  return longest;
}

Builder::Builder(std::string family, int ranks, uint32_t channels, uint32_t chunks)
    : current_(static_cast<size_t>(ranks) * chunks, Buffer::input), written_(static_cast<size_t>(ranks) * chunks, false) {
  schedule_.family = std::move(family);
  schedule_.ranks = ranks;
  schedule_.channels = channels;
  schedule_.chunks = chunks;
  schedule_.programs.resize(static_cast<size_t>(ranks) * channels);
  for (uint32_t c = 0; c < channels; ++c) {
    for (Rank r = 0; r < ranks; ++r) schedule_.programs[c * static_cast<size_t>(ranks) + static_cast<size_t>(r)] = {r, c, {}};
  }
}

Peers Builder::list(std::span<const Rank> ranks) {
  const Peers peers{static_cast<uint32_t>(schedule_.peer_table.size()), static_cast<uint32_t>(ranks.size())};
  schedule_.peer_table.insert(schedule_.peer_table.end(), ranks.begin(), ranks.end());
  return peers;
}

void Builder::step(Rank rank, std::span<const Rank> from, Chunks src, Chunks dst, std::span<const Rank> to, uint32_t place) {
  program(rank).steps.push_back({list(from), src, dst, list(to), place});
  if (dst.buffer != Buffer::output) return;
  for (uint32_t i = 0; i < dst.count; ++i) {
    current_[index(rank, dst[i])] = Buffer::output;
    written_[index(rank, dst[i])] = true;
  }
}

void Builder::flow(Rank from, Rank to, uint32_t chunk, bool reduces) {
  step(from, {}, Chunks{current_[index(from, chunk)], chunk, 1}, {}, {&to, 1});
  Step receive{list({&from, 1}), {}, Chunks{Buffer::output, chunk, 1}, {}, 1};
  if (reduces) receive.src = Chunks{current_[index(to, chunk)], chunk, 1};
  receives_.push_back({to, receive});
}

void Builder::round() {
  for (const Receive& receive : receives_) {
    program(receive.rank).steps.push_back(receive.step);
    const size_t at = index(receive.rank, receive.step.dst.first);
    current_[at] = Buffer::output;
    written_[at] = true;
  }
  receives_.clear();
}

Schedule Builder::build() && {
  const uint32_t per_channel = schedule_.chunks / schedule_.channels;
  for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
    for (uint32_t chunk = 0; chunk < schedule_.chunks; ++chunk) {
      if (written_[index(rank, chunk)]) continue;
      channel(chunk / per_channel);
      step(rank, {}, {Buffer::input, chunk, 1}, {Buffer::output, chunk, 1}, {});
    }
  }
  return std::move(schedule_);
}

}  // namespace gyre::schedule
