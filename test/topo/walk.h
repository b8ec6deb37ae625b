// Follows a schedule with code of its own, nothing of schedule/run.h: unbounded queues, and values that are lists of the ranks whose
// parts were reduced, in order. It says what came out, how many messages stand one after the other, and what was sent to whom.
#pragma once
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "schedule/schedule.h"

namespace gyre::test {

/// Chunk `chunk` of the inputs of `ranks`, reduced in this order; without ranks: nothing was written here.
struct Value {
  uint32_t chunk = 0;
  std::vector<Rank> ranks;
  bool operator==(const Value&) const = default;
};

struct Sent {
  Rank from = 0;
  Rank to = 0;
  uint32_t channel = 0;
  uint32_t chunks = 0;
};

class Walk {
 public:
  explicit Walk(const schedule::Schedule& s) : s_(s), depths_(s.programs.size()) {
    const schedule::Layout layout = s.layout();
    for (Rank r = 0; r < s.ranks; ++r) {
      auto& memory = memory_.emplace_back();
      memory[0].resize(layout.input_chunks());
      for (uint32_t c = 0; c < layout.input_chunks() && layout.has_input(r); ++c) memory[0][c] = {c, {r}};
      memory[1].resize(layout.output_chunks());
      memory[2].resize(s.scratch);
    }
    std::vector<size_t> at(s.programs.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = 0; i < at.size(); ++i) {
        for (; at[i] < s.programs[i].steps.size() && run(i, s.programs[i].steps[at[i]]); ++at[i]) moved = true;
      }
    }
    for (size_t i = 0; i < at.size(); ++i) ended = ended && at[i] == s.programs[i].steps.size();
    for (const auto& [who, queue] : queues_) ended = ended && queue.empty();
  }

  bool ended = true;           ///< all steps ran, all messages were received
  int critical = 0;            ///< messages on the longest way
  std::vector<Sent> messages;  ///< in no particular order

  const Value& output(Rank rank, uint32_t chunk) const { return memory_[static_cast<size_t>(rank)][1][chunk]; }
  /// In chunks.
  template <class Which>
  uint32_t sent(Which which) const {
    uint32_t chunks = 0;
    for (const Sent& message : messages) chunks += which(message) ? message.chunks : 0;
    return chunks;
  }
  uint32_t sent_by(Rank rank) const {
    return sent([rank](const Sent& m) { return m.from == rank; });
  }
  uint32_t sent_to(Rank rank) const {
    return sent([rank](const Sent& m) { return m.to == rank; });
  }

 private:
  struct Message {
    std::vector<Value> values;
    int depth = 0;
  };
  auto& queue(Rank from, Rank to, uint32_t channel) { return queues_[{from, to, channel}]; }
  Value& at(Rank rank, const schedule::Chunks& chunks, uint32_t i) {
    return memory_[static_cast<size_t>(rank)].at(static_cast<size_t>(chunks.buffer)).at(chunks.first + i * chunks.stride);
  }

  bool run(size_t program, const schedule::Step& step) {
    const auto& [rank, channel, strand, steps] = s_.programs[program];
    for (const Rank peer : s_.peers(step.from)) {
      if (queue(peer, rank, channel).empty()) return false;
    }
    std::vector<std::vector<Value>> sources;
    for (const Rank peer : s_.peers(step.from)) {
      Message& message = queue(peer, rank, channel).front();
      depths_[program] = std::max(depths_[program], message.depth);
      sources.push_back(std::move(message.values));
      queue(peer, rank, channel).pop_front();
    }
    if (step.src.count != 0) {
      std::vector<Value> own;
      for (uint32_t i = 0; i < step.src.count; ++i) own.push_back(at(rank, step.src, i));
      sources.insert(sources.begin() + std::min(step.place, step.from.count), own);
    }
    std::vector<Value> sum = sources.at(0);
    for (size_t i = 1; i < sources.size(); ++i) {
      for (size_t j = 0; j < sum.size(); ++j) {
        const Value& more = sources[i].at(j);
        if (more.chunk != sum[j].chunk || more.ranks.empty()) ended = false;
        sum[j].ranks.insert(sum[j].ranks.end(), more.ranks.begin(), more.ranks.end());
      }
    }
    for (uint32_t i = 0; i < step.dst.count; ++i) at(rank, step.dst, i) = sum.at(i);
    for (const Rank peer : s_.peers(step.to)) {
      queue(rank, peer, channel).push_back({sum, depths_[program] + 1});
      messages.push_back({rank, peer, channel, static_cast<uint32_t>(sum.size())});
      critical = std::max(critical, depths_[program] + 1);
    }
    return true;
  }

  const schedule::Schedule& s_;
  std::vector<int> depths_;  // [program]
  std::vector<std::array<std::vector<Value>, 3>> memory_;
  std::map<std::tuple<Rank, Rank, uint32_t>, std::deque<Message>> queues_;
};

}  // namespace gyre::test
