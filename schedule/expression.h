// Reductions as expressions: which ranks' parts of a chunk, in which association. Equal expressions have equal numbers, so "the same bits
// on every rank" is a comparison of integers.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/types.h"

namespace gyre::schedule {

class Expressions {
 public:
  using Id = uint32_t;
  static constexpr Id none = 0;  ///< nothing was written here

  explicit Expressions(int ranks) : words_((static_cast<size_t>(ranks) + 63) / 64), ranks_(ranks), nodes_(1), parts_(words_) {}

  /// Rank's own part of a chunk.
  Id leaf(Rank rank, uint32_t chunk) {
    const Id id = add({chunk, none, none, rank});
    parts_[id * words_ + static_cast<size_t>(rank) / 64] |= uint64_t{1} << (static_cast<unsigned>(rank) % 64);
    return id;
  }
  /// left op right, made by `rank`; none when they are of different chunks or share a rank's part.
  Id reduce(Id left, Id right, Rank rank) {
    const uint64_t key = uint64_t{left} << 32 | right;
    if (const auto known = reductions_.find(key); known != reductions_.end()) {
      if (nodes_[known->second].maker != rank) nodes_[known->second].replicated = true;
      return known->second;
    }
    if (nodes_[left].chunk != nodes_[right].chunk) return none;
    for (size_t w = 0; w < words_; ++w) {
      if ((parts_[left * words_ + w] & parts_[right * words_ + w]) != 0) return none;
    }
    const Id id = add({nodes_[left].chunk, left, right, rank});
    for (size_t w = 0; w < words_; ++w) parts_[id * words_ + w] = parts_[left * words_ + w] | parts_[right * words_ + w];
    reductions_.emplace(key, id);
    return id;
  }

  uint32_t chunk(Id id) const { return nodes_[id].chunk; }
  bool replicated(Id id) const { return nodes_[id].replicated; }
  bool has(Id id, Rank rank) const {
    return (parts_[id * words_ + static_cast<size_t>(rank) / 64] >> (static_cast<unsigned>(rank) % 64) & 1) != 0;
  }
  bool complete(Id id) const { return first_missing(id) == ranks_; }
  /// The lowest rank whose part is not in it, or the number of ranks.
  Rank first_missing(Id id) const {
    Rank rank = 0;
    while (rank < ranks_ && has(id, rank)) ++rank;
    return rank;
  }
  /// "((r0+r1)+r2)", for messages and drawings.
  std::string text(Id id) const {
    if (id == none) return "nothing";
    const Node& node = nodes_[id];
    if (node.left == none) return fmt::format("r{}", node.maker);
    return fmt::format("({}+{})", text(node.left), text(node.right));
  }

 private:
  struct Node {
    uint32_t chunk = 0;
    Id left = none;
    Id right = none;
    Rank maker = -1;  ///< of a leaf: whose part
    bool replicated = false;
  };
  Id add(Node node) {
    nodes_.push_back(node);
    parts_.resize(nodes_.size() * words_);
    return static_cast<Id>(nodes_.size() - 1);
  }

  size_t words_;
  Rank ranks_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> parts_;  // a bit per rank, words_ words per node
  std::unordered_map<uint64_t, Id> reductions_;
};

}  // namespace gyre::schedule
