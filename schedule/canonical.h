// The canonical tree: the association in which parts 0 … n-1, one per rank, are reduced where numerics are ordered. The one definition,
// for the proof, the generators and every reduction that takes several sources at once.
//
// It is the butterfly: neighbours first, then pairs with pairs, and so on. Where n is no power of two, the first n - 2^k parts fold into
// their neighbours before that, 2^k being the largest power of two below n, so that 2^k units are left:
//
//   n = 4   (0+1)+(2+3)          n = 6   ((0+1)+(2+3))+(4+5)
//   n = 5   ((0+1)+2)+(3+4)      n = 7   ((0+1)+(2+3))+((4+5)+6)
//
// So it is ⌈log2 n⌉ deep, parts that are reduced are always neighbours, and the tree of 2^j m parts is that of m groups of 2^j: nodes of a
// power of two of ranks may reduce inside first.
#pragma once
#include <bit>
#include <cstdint>

namespace gyre::schedule {

class CanonicalTree {
 public:
  constexpr explicit CanonicalTree(uint32_t parts) : parts_(parts), surplus_(parts == 0 ? 0 : parts - std::bit_floor(parts)) {}

  constexpr uint32_t parts() const { return parts_; }
  /// Where the second half of [first, end) begins, which must be one of the tree's sums: two parts or more.
  constexpr uint32_t middle(uint32_t first, uint32_t end) const {
    const uint32_t units = unit(end) - unit(first);
    return units == 1 ? first + 1 : first_of(unit(first) + units / 2);
  }
  /// [first, middle) + [middle, end) is one of the tree's sums.
  constexpr bool has(uint32_t first, uint32_t middle, uint32_t end) const {
    if (first >= middle || middle >= end || end > parts_ || !begins_unit(first) || !begins_unit(end)) return false;
    const uint32_t units = unit(end) - unit(first);
    return std::has_single_bit(units) && unit(first) % units == 0 && middle == this->middle(first, end);
  }

 private:
  constexpr bool begins_unit(uint32_t part) const { return part >= 2 * surplus_ || part % 2 == 0; }
  constexpr uint32_t unit(uint32_t part) const { return part < 2 * surplus_ ? part / 2 : part - surplus_; }
  constexpr uint32_t first_of(uint32_t unit) const { return unit < surplus_ ? 2 * unit : unit + surplus_; }

  uint32_t parts_;
  uint32_t surplus_;  // parts that fold first
};

/// leaf(i) for one part; op(left, right) for two values. Of [first, end), which must be a part or one of the tree's sums.
template <class Leaf, class Op>
constexpr auto reduce_canonically(const CanonicalTree& tree, uint32_t first, uint32_t end, const Leaf& leaf, const Op& op)
    -> decltype(leaf(first)) {
  if (end - first == 1) return leaf(first);
  const uint32_t middle = tree.middle(first, end);
  // Not as arguments: these may be computed in any order.
  auto left = reduce_canonically(tree, first, middle, leaf, op);
  auto right = reduce_canonically(tree, middle, end, leaf, op);
  return op(left, right);
}

}  // namespace gyre::schedule
