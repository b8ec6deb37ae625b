// Reductions as expressions: which ranks' parts of a chunk, in which association. Equal expressions have equal numbers, so "the same bits
// on every rank" is a comparison of integers. An expression knows how many parts it has, which costs nothing; whether one is there twice
// is looked at once, in the result.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"

namespace gyre::schedule {

class Expressions {
 public:
  using Id = uint32_t;
  static constexpr Id none = 0;  ///< nothing was written here

  explicit Expressions(int ranks) : ranks_(static_cast<uint32_t>(ranks)), nodes_(1), seen_(ranks_) {}
  void reserve(size_t expressions) { nodes_.reserve(expressions + 1); }

  /// Rank's own part of a chunk.
  Id leaf(Rank rank, uint32_t chunk) { return add({chunk, none, none, none, none, 1, rank, 0, false}); }
  /// left op right, made by `rank` in a step of this number; none when they are of different chunks or have more parts than there are
  /// ranks.
  Id reduce(Id left, Id right, Rank rank, uint32_t step = 0) {
    // Reductions hang on the younger of their operands: old ones, such as inputs, take part in many, young ones in one or two.
    const Id younger = left > right ? left : right;
    for (Id id = nodes_[younger].reductions; id != none; id = nodes_[id].next) {
      Node& node = nodes_[id];
      if (node.left != left || node.right != right) continue;
      if (node.rank != rank) node.replicated = true;
      return id;
    }
    const uint32_t parts = nodes_[left].parts + nodes_[right].parts;
    if (nodes_[left].chunk != nodes_[right].chunk || parts > ranks_) return none;
    const Id id = add({nodes_[left].chunk, left, right, none, nodes_[younger].reductions, parts, rank, step & 0x7fffffff, false});
    nodes_[younger].reductions = id;
    return id;
  }

  /// All are below it, and each is above its operands.
  Id end() const { return static_cast<Id>(nodes_.size()); }
  uint32_t chunk(Id id) const { return nodes_[id].chunk; }
  /// The rank whose part it is, alone; -1: a reduction, or nothing.
  Rank leaf_of(Id id) const { return nodes_[id].left == none ? nodes_[id].rank : -1; }
  Id left(Id id) const { return nodes_[id].left; }
  Id right(Id id) const { return nodes_[id].right; }
  /// The number of the step that made it first.
  uint32_t step(Id id) const { return nodes_[id].step; }
  bool replicated(Id id) const { return nodes_[id].replicated; }
  /// Has as many parts as there are ranks: each once, unless doubled() says otherwise.
  bool complete(Id id) const { return nodes_[id].parts == ranks_; }
  /// The lowest rank whose part is not in it, or the number of ranks.
  Rank first_missing(Id id) {
    mark(id);
    Rank rank = 0;
    while (rank < static_cast<Rank>(ranks_) && seen_[static_cast<size_t>(rank)] == mark_) ++rank;
    return rank;
  }
  /// A reduction in it whose operands share a part, though neither has one twice; none: every part is there once.
  Id doubled(Id id) {
    if (mark(id)) return none;
    for (;;) {
      if (!mark(left(id))) {
        id = left(id);
      } else if (!mark(right(id))) {
        id = right(id);
      } else {
        return id;
      }
    }
  }
  /// "((r0+r1)+r2)", for messages and drawings.
  std::string text(Id id) const {
    if (id == none) return "nothing";
    const Node& node = nodes_[id];
    if (node.left == none) return fmt::format("r{}", node.rank);
    return fmt::format("({}+{})", text(node.left), text(node.right));
  }

 private:
  struct Node {
    uint32_t chunk = 0;
    Id left = none;
    Id right = none;
    Id reductions = none;  // the first that hangs on this
    Id next = none;        // the next that hangs on the same
    uint32_t parts = 0;
    Rank rank = -1;  // of a leaf: whose part; of a reduction: who made it first
    uint32_t step : 31 = 0;
    bool replicated : 1 = false;
  };
  Id add(Node node) {
    nodes_.push_back(node);
    return static_cast<Id>(nodes_.size() - 1);
  }
  // Marks the ranks whose parts are in it; false: one is there twice.
  bool mark(Id id) {
    ++mark_;
    bool once = true;
    stack_.assign(1, id);
    while (!stack_.empty()) {
      const Node& node = nodes_[stack_.back()];
      stack_.pop_back();
      if (node.left != none) {
        stack_.push_back(node.left);
        stack_.push_back(node.right);
      } else if (node.rank >= 0) {
        uint64_t& seen = seen_[static_cast<size_t>(node.rank)];
        once = once && seen != mark_;
        seen = mark_;
      }
    }
    return once;
  }

  uint32_t ranks_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> seen_;  // [rank]: the mark that reached it last
  uint64_t mark_ = 0;
  std::vector<Id> stack_;
};

}  // namespace gyre::schedule
