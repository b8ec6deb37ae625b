// A schedule written step by step, exactly as it says: no builder adds anything.
#pragma once
#include <vector>

#include "schedule/schedule.h"

namespace gyre::test {

inline constexpr schedule::Chunks none{};
inline constexpr schedule::Chunks in_0{schedule::Buffer::input, 0, 1};
inline constexpr schedule::Chunks out_0{schedule::Buffer::output, 0, 1};

class Script {
 public:
  Script(Collective collective, int ranks, uint32_t chunks, uint32_t scratch = 0, uint32_t strands = 1, Rank root = 0) {
    schedule_.family = "script";
    schedule_.collective = collective;
    schedule_.ranks = ranks;
    schedule_.root = root;
    schedule_.strands = strands;
    schedule_.chunks = chunks;
    schedule_.scratch = scratch;
    for (uint32_t s = 0; s < strands; ++s) {
      for (Rank r = 0; r < ranks; ++r) schedule_.programs.push_back({r, 0, s, {}});
    }
  }
  Script& on(uint32_t strand) {
    strand_ = strand;
    return *this;
  }
  Script& step(Rank rank, const std::vector<Rank>& from, schedule::Chunks src, schedule::Chunks dst, const std::vector<Rank>& to,
               uint32_t place = 0) {
    const auto program = strand_ * static_cast<size_t>(schedule_.ranks) + static_cast<size_t>(rank);
    schedule_.programs[program].steps.push_back({list(from), src, dst, list(to), place});
    return *this;
  }
  /// The last step that was written reduces its sources so.
  Script& reducing(Rank rank, schedule::Association association) {
    schedule_.programs[strand_ * static_cast<size_t>(schedule_.ranks) + static_cast<size_t>(rank)].steps.back().association = association;
    return *this;
  }
  operator const schedule::Schedule&() const { return schedule_; }  // NOLINT(google-explicit-constructor): it is one

 private:
  schedule::Peers list(const std::vector<Rank>& ranks) {
    const schedule::Peers peers{static_cast<uint32_t>(schedule_.peer_table.size()), static_cast<uint32_t>(ranks.size())};
    schedule_.peer_table.insert(schedule_.peer_table.end(), ranks.begin(), ranks.end());
    return peers;
  }

  schedule::Schedule schedule_;
  uint32_t strand_ = 0;
};

}  // namespace gyre::test
