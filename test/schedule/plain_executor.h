// Runs a schedule on integers with code of its own: unbounded queues, no slices, no proofs, nothing of schedule/run.h. What verify.h is
// compared with, so that a mistake in the one is not repeated in the other.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "schedule/schedule.h"

namespace gyre::test {

class PlainExecutor {
 public:
  using Values = std::vector<std::optional<uint64_t>>;  // a chunk is one integer; empty: nothing was written there

  PlainExecutor(const schedule::Schedule& schedule, bool in_place, uint64_t seed) : schedule_(schedule), in_place_(in_place) {
    std::mt19937_64 random(seed);
    const auto ranks = static_cast<size_t>(schedule.ranks);
    sums_.resize(schedule.chunks);
    for (size_t rank = 0; rank < ranks; ++rank) {
      auto& input = input_.emplace_back();
      for (uint32_t chunk = 0; chunk < schedule.chunks; ++chunk) {
        input.emplace_back(random());
        sums_[chunk] = sums_[chunk].value_or(0) + *input.back();
      }
    }
    output_.assign(ranks, Values(schedule.chunks));
  }

  /// True when every rank ends with the sum of all inputs, no message is left, and no input was written.
  bool all_reduces() {
    std::vector<size_t> at(schedule_.programs.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = 0; i < at.size(); ++i) {
        while (at[i] < schedule_.programs[i].steps.size() && run(schedule_.programs[i], schedule_.programs[i].steps[at[i]]))
          ++at[i], moved = true;
      }
      if (wrong_) return false;
    }
    for (size_t i = 0; i < at.size(); ++i) {
      if (at[i] != schedule_.programs[i].steps.size()) return false;
    }
    for (const auto& [who, queue] : queues_) {
      if (!queue.empty()) return false;
    }
    const auto& results = in_place_ ? input_ : output_;
    for (const Values& result : results) {
      if (result != sums_) return false;
    }
    return true;
  }
  const std::vector<Values>& results() const { return in_place_ ? input_ : output_; }

 private:
  std::optional<uint64_t>& at(Rank rank, schedule::Buffer buffer, uint32_t chunk) {
    const bool input = in_place_ || buffer == schedule::Buffer::input;
    return (input ? input_ : output_)[static_cast<size_t>(rank)][chunk];
  }
  auto& queue(Rank from, Rank to, uint32_t channel) { return queues_[{from, to, channel}]; }

  // False: a message is missing yet. What can't be right at all ends the run.
  bool run(const schedule::Program& program, const schedule::Step& step) {
    for (const Rank peer : schedule_.peers(step.from)) {
      if (queue(peer, program.rank, program.channel).empty()) return false;
    }
    std::vector<Values> sources;
    for (const Rank peer : schedule_.peers(step.from)) {
      auto& messages = queue(peer, program.rank, program.channel);
      if (messages.empty()) return stop();  // a peer is named twice
      sources.push_back(std::move(messages.front()));
      messages.pop_front();
    }
    if (step.src.count != 0) {
      auto& own = sources.emplace_back();
      for (uint32_t i = 0; i < step.src.count; ++i) own.push_back(at(program.rank, step.src.buffer, step.src.first + i * step.src.stride));
    }
    if (sources.empty()) return stop();
    Values sum(sources[0].size(), 0);
    for (const Values& source : sources) {
      if (source.size() != sum.size()) return stop();
      for (size_t i = 0; i < sum.size(); ++i) {
        if (!source[i]) return stop();
        *sum[i] += *source[i];
      }
    }
    if (step.dst.count != 0) {
      if (step.dst.count != sum.size() || step.dst.buffer == schedule::Buffer::input) return stop();
      for (uint32_t i = 0; i < step.dst.count; ++i) at(program.rank, step.dst.buffer, step.dst.first + i * step.dst.stride) = sum[i];
    }
    if (step.src.count == 0 && step.dst.count == 0) return stop();  // of no known size
    for (const Rank peer : schedule_.peers(step.to)) queue(program.rank, peer, program.channel).push_back(sum);
    return true;
  }
  bool stop() {
    wrong_ = true;
    return false;
  }

  const schedule::Schedule& schedule_;
  bool in_place_;
  bool wrong_ = false;
  std::vector<Values> input_;
  std::vector<Values> output_;
  Values sums_;
  std::map<std::tuple<Rank, Rank, uint32_t>, std::deque<Values>> queues_;
};

}  // namespace gyre::test
