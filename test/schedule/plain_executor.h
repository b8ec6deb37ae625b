// Runs a schedule on integers with code of its own: unbounded queues, no slices, no proofs, an interleaving by seed, nothing of
// schedule/run.h or layout.h. What verify.h is compared with, so that a mistake in the one is not repeated in the other. Messages hold
// their values, or, mapped, say where the receiver is to read them in the memory of the sender.
#pragma once
#include <algorithm>
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

  PlainExecutor(const schedule::Schedule& schedule, bool in_place, uint64_t seed, bool mapped = false)
      : schedule_(schedule), random_(seed), mapped_(mapped) {
    for (Rank rank = 0; rank < schedule.ranks; ++rank) bind(rank, in_place);
  }

  /// Runs it, and says whether every rank ends with what NCCL defines, no message is left, and nothing was touched that must not be.
  bool computes() {
    std::vector<size_t> at(schedule_.programs.size());
    std::vector<size_t> order(at.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (bool moved = true; moved;) {
      moved = false;
      std::shuffle(order.begin(), order.end(), random_);
      for (const size_t i : order) {
        const auto& steps = schedule_.programs[i].steps;
        for (uint64_t burst = 1 + random_() % 3; burst != 0 && at[i] < steps.size() && run(schedule_.programs[i], steps[at[i]]); --burst) {
          ++at[i];
          moved = true;
        }
      }
      if (wrong_) return false;
    }
    for (size_t i = 0; i < at.size(); ++i) {
      if (at[i] != schedule_.programs[i].steps.size()) return false;
    }
    const bool left = std::any_of(queues_.begin(), queues_.end(), [](const auto& queue) { return !queue.second.empty(); });
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      if (result(rank) != expected(rank)) return false;
    }
    return !left;
  }

  /// The output of a rank; empty where it has none.
  Values result(Rank rank) const {
    const Memory& m = memory_[static_cast<size_t>(rank)];
    const auto first = m.values.begin() + static_cast<std::ptrdiff_t>(m.output);
    return {first, first + static_cast<std::ptrdiff_t>(m.outputs)};
  }

 private:
  struct Memory {
    Values values;
    size_t input = 0, inputs = 0;  // where it begins, chunks; none: this rank does not have it
    size_t output = 0, outputs = 0;
    size_t scratch = 0;
  };

  struct Message {
    Values values;
    std::vector<const std::optional<uint64_t>*> places;  // mapped: where they lie until they are taken
    const schedule::Program* sender;
  };

  // NCCL's buffers: how large they are, who has them, and where one lies in the other in place.
  void bind(Rank rank, bool in_place) {
    const auto blocks = static_cast<size_t>(schedule_.ranks);
    const size_t block = schedule_.chunks;
    const bool root = rank == schedule_.root;
    Memory& m = memory_.emplace_back();
    size_t input_in = 0;  // in place, of the shared memory
    size_t output_in = 0;
    const size_t own = static_cast<size_t>(rank) * block;
    switch (schedule_.collective) {
      case Collective::all_reduce:
        m.inputs = block, m.outputs = block;
        break;
      case Collective::reduce:
        m.inputs = block, m.outputs = root ? block : 0;
        break;
      case Collective::broadcast:
        m.inputs = root ? block : 0, m.outputs = block;
        break;
      case Collective::reduce_scatter:
        m.inputs = blocks * block, m.outputs = block, output_in = own;
        break;
      case Collective::all_gather:
        m.inputs = block, m.outputs = blocks * block, input_in = own;
        break;
      case Collective::all_to_all:
        m.inputs = m.outputs = blocks * block, in_place = false;
        break;
      case Collective::gather:
        m.inputs = block, m.outputs = root ? blocks * block : 0, input_in = own;
        break;
      case Collective::scatter:
        m.inputs = root ? blocks * block : 0, m.outputs = block, output_in = own;
        break;
    }
    if (in_place && m.inputs != 0 && m.outputs != 0) {
      m.input = input_in;
      m.output = output_in;
    } else {
      m.output = m.inputs;
    }
    m.scratch = std::max(m.input + m.inputs, m.output + m.outputs);
    m.values.resize(m.scratch + schedule_.scratch);
    auto& parts = parts_.emplace_back();
    for (size_t i = 0; i < m.inputs; ++i) m.values[m.input + i] = parts.emplace_back(random_());
  }

  Values expected(Rank rank) const {
    const size_t block = schedule_.chunks;
    const size_t own = static_cast<size_t>(rank) * block;
    const auto from = [&](Rank source, size_t chunk) { return parts_[static_cast<size_t>(source)][chunk]; };
    Values all;
    for (size_t i = 0; i < memory_[static_cast<size_t>(rank)].outputs; ++i) {
      const auto source = static_cast<Rank>(i / block);
      uint64_t sum = 0;
      switch (schedule_.collective) {
        case Collective::all_reduce:
        case Collective::reduce:
          for (const auto& parts : parts_) sum += parts[i];
          break;
        case Collective::reduce_scatter:
          for (const auto& parts : parts_) sum += parts[own + i];
          break;
        case Collective::all_gather:
        case Collective::gather:
          sum = from(source, i % block);
          break;
        case Collective::broadcast:
          sum = from(schedule_.root, i);
          break;
        case Collective::scatter:
          sum = from(schedule_.root, own + i);
          break;
        case Collective::all_to_all:
          sum = from(source, own + i % block);
          break;
      }
      all.emplace_back(sum);
    }
    return all;
  }

  // The place of a chunk; null: this rank has no such chunk.
  std::optional<uint64_t>* at(Rank rank, schedule::Buffer buffer, size_t chunk) {
    Memory& m = memory_[static_cast<size_t>(rank)];
    switch (buffer) {
      case schedule::Buffer::input:
        return chunk < m.inputs ? &m.values[m.input + chunk] : nullptr;
      case schedule::Buffer::output:
        return chunk < m.outputs ? &m.values[m.output + chunk] : nullptr;
      default:
        return chunk < schedule_.scratch ? &m.values[m.scratch + chunk] : nullptr;
    }
  }
  auto& queue(Rank from, Rank to, uint32_t channel) { return queues_[{from, to, channel}]; }

  // A message of this strand is still to be read from where the step writes.
  bool held(const schedule::Program& program, const schedule::Step& step) {
    for (uint32_t i = 0; i < step.dst.count; ++i) {
      const auto* place = at(program.rank, step.dst.buffer, step.dst.first + size_t{i} * step.dst.stride);
      for (const auto& [who, messages] : queues_) {
        if (std::get<0>(who) != program.rank || std::get<2>(who) != program.channel) continue;
        for (const Message& message : messages) {
          if (message.sender == &program && std::count(message.places.begin(), message.places.end(), place) != 0) return true;
        }
      }
    }
    return false;
  }

  // False: a message is missing yet, or one of its own is not yet taken. What can't be right at all ends the run.
  bool run(const schedule::Program& program, const schedule::Step& step) {
    for (const Rank peer : schedule_.peers(step.from)) {
      if (queue(peer, program.rank, program.channel).empty()) return false;
    }
    if (mapped_ && held(program, step)) return false;
    std::vector<Values> sources;
    for (const Rank peer : schedule_.peers(step.from)) {
      auto& messages = queue(peer, program.rank, program.channel);
      if (messages.empty()) return stop();  // a peer is named twice
      for (const auto* place : messages.front().places) messages.front().values.push_back(*place);
      sources.push_back(std::move(messages.front().values));
      messages.pop_front();
    }
    if (step.src.count != 0 && !read(program.rank, step.src, sources.emplace_back())) return stop();
    if (sources.empty() || (step.src.count == 0 && step.dst.count == 0)) return stop();  // of no value, or no known size
    Values sum(sources[0].size(), 0);
    for (const Values& source : sources) {
      if (source.size() != sum.size()) return stop();
      for (size_t i = 0; i < sum.size(); ++i) {
        if (!source[i]) return stop();
        *sum[i] += *source[i];
      }
    }
    if (step.dst.count != 0 && (step.dst.count != sum.size() || step.dst.buffer == schedule::Buffer::input)) return stop();
    for (uint32_t i = 0; i < step.dst.count; ++i) {
      auto* value = at(program.rank, step.dst.buffer, step.dst.first + size_t{i} * step.dst.stride);
      if (value == nullptr) return stop();
      *value = sum[i];
    }
    send(program, step, sum, step.dst.count != 0 ? step.dst : sources.size() == 1 ? step.src : schedule::Chunks{});
    return true;
  }
  bool read(Rank rank, const schedule::Chunks& chunks, Values& values) {
    for (uint32_t i = 0; i < chunks.count; ++i) {
      const auto* value = at(rank, chunks.buffer, chunks.first + size_t{i} * chunks.stride);
      if (value == nullptr) return false;
      values.push_back(*value);
    }
    return true;
  }
  void send(const schedule::Program& program, const schedule::Step& step, const Values& values, const schedule::Chunks& lie_in) {
    for (const Rank peer : schedule_.peers(step.to)) {
      Message message{values, {}, &program};
      if (mapped_ && lie_in.count != 0) {
        message.values.clear();
        for (uint32_t i = 0; i < lie_in.count; ++i) {
          message.places.push_back(at(program.rank, lie_in.buffer, lie_in.first + size_t{i} * lie_in.stride));
        }
      }
      queue(program.rank, peer, program.channel).push_back(std::move(message));
    }
  }
  bool stop() {
    wrong_ = true;
    return false;
  }

  const schedule::Schedule& schedule_;
  std::mt19937_64 random_;
  bool mapped_;
  bool wrong_ = false;
  std::vector<Memory> memory_;                // [rank]
  std::vector<std::vector<uint64_t>> parts_;  // [rank]: the inputs
  std::map<std::tuple<Rank, Rank, uint32_t>, std::deque<Message>> queues_;
};

}  // namespace gyre::test
