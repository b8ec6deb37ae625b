// Random groups of sends and receives for all ranks of a job, with memory to send from and receive into, and what must arrive.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "engine/batch.h"
#include "test/engine/job_memory.h"

namespace gyre::test {

struct Sent {
  Rank from = 0;
  Rank to = 0;
  size_t count = 0;
};

/// Messages of small, large and no bytes between ranks that are drawn too, a rank itself among them.
inline std::vector<Sent> random_messages(std::mt19937& random, int ranks, size_t most) {
  std::vector<Sent> messages(random() % static_cast<size_t>(4 * ranks));
  for (Sent& m : messages) {
    m.from = static_cast<Rank>(random() % static_cast<size_t>(ranks));
    m.to = static_cast<Rank>(random() % static_cast<size_t>(ranks));
    m.count = random() % 4 == 0 ? 0 : random() % (random() % 2 == 0 ? 20 : most);
  }
  return messages;
}

/// One rank's part of a group. Its transfers are in a random order, in which only those of one pair and direction keep theirs.
class Part {
 public:
  Part(const std::vector<Sent>& messages, Rank rank, std::mt19937& random) : messages_(messages), rank_(rank) {
    for (size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].from == rank) add(i, engine::Transfer::Kind::send, messages[i].to);
      if (messages[i].to == rank) add(i, engine::Transfer::Kind::receive, messages[i].from);
    }
    shuffle(random);
  }

  const std::vector<engine::Transfer>& transfers() const { return transfers_; }
  std::string wrong() const {
    for (size_t k = 0; k < transfers_.size(); ++k) {
      const Sent& message = messages_[of_[k]];
      const auto* got = static_cast<const int32_t*>(transfers_[k].data);
      for (size_t i = 0; i < message.count; ++i) {
        if (got[i] != value(of_[k], i)) return fmt::format("rank {}, message {}, element {} of {}", rank_, of_[k], i, message.count);
      }
      if (got[message.count] != canary) return fmt::format("rank {}, message {}: written past the end", rank_, of_[k]);
    }
    return {};
  }

 private:
  static constexpr int32_t canary = -77;
  static int32_t value(size_t message, size_t i) { return drawn_as<int32_t>(static_cast<Rank>(message), i); }

  void add(size_t message, engine::Transfer::Kind kind, Rank peer) {
    std::vector<int32_t>& memory = memory_.emplace_back(messages_[message].count + 1, canary);
    for (size_t i = 0; kind == engine::Transfer::Kind::send && i < messages_[message].count; ++i) memory[i] = value(message, i);
    transfers_.push_back({kind, peer, memory.data(), messages_[message].count, DataType::int32});
    of_.push_back(message);
  }
  void shuffle(std::mt19937& random) {
    std::vector<size_t> order(transfers_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    const auto strand = [&](size_t k) { return 2 * transfers_[k].peer + (transfers_[k].kind == engine::Transfer::Kind::send ? 1 : 0); };
    for (size_t i = 0; i < order.size(); ++i) {
      for (size_t j = i + 1; j < order.size(); ++j) {
        if (strand(order[i]) == strand(order[j]) && order[i] > order[j]) std::swap(order[i], order[j]);
      }
    }
    std::vector<engine::Transfer> transfers;
    std::vector<size_t> of;
    for (const size_t k : order) transfers.push_back(transfers_[k]), of.push_back(of_[k]);
    transfers_ = std::move(transfers);
    of_ = std::move(of);
  }

  const std::vector<Sent>& messages_;
  Rank rank_;
  std::vector<std::vector<int32_t>> memory_;
  std::vector<engine::Transfer> transfers_;
  std::vector<size_t> of_;  // the message of each
};

}  // namespace gyre::test
