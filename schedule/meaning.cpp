#include "schedule/meaning.h"

#include <utility>

#include "schedule/canonical.h"
#include "schedule/expression_machine.h"

namespace gyre::schedule {
namespace {

using Id = Expressions::Id;

// What an output chunk of a rank must not be; empty: it is as the layout says.
std::string wrong(ExpressionMachine& machine, Rank rank, uint32_t chunk) {
  const Layout layout = machine.schedule().layout();
  Expressions& expressions = machine.expressions();
  const Part part = layout.expected(rank, chunk);
  const Id id = machine.output(rank, chunk);
  const auto is = [&](std::string_view what) { return fmt::format("output chunk {} on rank {} {}", chunk, rank, what); };
  if (id == Expressions::none) return is("is never written");
  if (expressions.chunk(id) != part.chunk) return is(fmt::format("is of input chunk {} and not of {}", expressions.chunk(id), part.chunk));
  if (part.rank != every_rank) {
    if (expressions.leaf_of(id) == part.rank) return {};
    return is(fmt::format("is {} and not r{}", expressions.text(id), part.rank));
  }
  if (layout.collective == Collective::all_reduce && rank != 0) {
    const Id reference = machine.output(0, chunk);  // which was looked at
    if (id == reference) return {};
    if (expressions.complete(id)) {
      return fmt::format("output chunk {} is {} on rank 0 and {} on rank {}: not the same bits", chunk, expressions.text(reference),
                         expressions.text(id), rank);
    }
  }
  if (const Id doubled = expressions.doubled(id); doubled != Expressions::none) return machine.refuse(doubled, "a part twice");
  if (!expressions.complete(id)) return is(fmt::format("lacks rank {}'s part", expressions.first_missing(id)));
  return {};
}

// Which sums are the canonical tree's, of all that the schedule makes.
class Canonical {
 public:
  Canonical(const Expressions& expressions, int ranks)
      : expressions_(expressions), tree_(static_cast<uint32_t>(ranks)), ranges_(expressions.end()) {
    for (Id id = 1; id < ranges_.size(); ++id) ranges_[id] = range(id);
  }
  /// A reduction in it that is not, though both of its operands are; none: it is the tree's itself.
  Id first_other(Id id) const {
    if (of_tree(id)) return Expressions::none;
    while (!of_tree(expressions_.left(id)) || !of_tree(expressions_.right(id))) {
      id = of_tree(expressions_.left(id)) ? expressions_.right(id) : expressions_.left(id);
    }
    return id;
  }

 private:
  struct Range {
    uint32_t first = 0;
    uint32_t end = 0;  // 0: not of the tree
  };
  bool of_tree(Id id) const { return ranges_[id].end != 0; }
  Range range(Id id) const {
    if (const Rank rank = expressions_.leaf_of(id); rank >= 0) return {static_cast<uint32_t>(rank), static_cast<uint32_t>(rank) + 1};
    Range low = ranges_[expressions_.left(id)];
    Range high = ranges_[expressions_.right(id)];
    if (low.end == 0 || high.end == 0) return {};
    if (high.first < low.first) std::swap(low, high);  // what is reduced is the same in either order
    return low.end == high.first && tree_.has(low.first, low.end, high.end) ? Range{low.first, high.end} : Range{};
  }

  const Expressions& expressions_;
  CanonicalTree tree_;
  std::vector<Range> ranges_;  // [expression]: of ranks
};

// The first output that is not the canonical sum, or the first form that has no room.
std::string disordered(ExpressionMachine& machine) {
  const Layout layout = machine.schedule().layout();
  if (!reduces(layout.collective)) return {};
  const Canonical canonical(machine.expressions(), layout.ranks);
  for (Rank rank = 0; rank < layout.ranks; ++rank) {
    for (uint32_t chunk = 0; chunk < layout.output_chunks() && layout.has_output(rank); ++chunk) {
      const Id other = canonical.first_other(machine.output(rank, chunk));
      if (other != Expressions::none) return machine.refuse(other, "not a sum of the canonical tree");
    }
  }
  return machine.formless();
}

std::string wrong_result(ExpressionMachine& machine) {
  const Layout layout = machine.schedule().layout();
  for (Rank rank = 0; rank < layout.ranks; ++rank) {
    for (uint32_t chunk = 0; chunk < layout.output_chunks() && layout.has_output(rank); ++chunk) {
      if (std::string what = wrong(machine, rank, chunk); !what.empty()) return what;
    }
  }
  return {};
}

}  // namespace

Meaning interpret(const Schedule& schedule, const Wiring& wiring, bool in_place, bool ordered) {
  ExpressionMachine machine(schedule, wiring, in_place);
  for (uint32_t c = 0; c < schedule.channels; ++c) {
    if (std::string fault = machine.run(c); !fault.empty()) return {std::move(fault), {}};
  }
  std::string fault = machine.left_over();
  if (fault.empty()) fault = wrong_result(machine);
  if (fault.empty() && ordered) fault = disordered(machine);
  if (!fault.empty()) return {std::move(fault), {}};
  return {{}, {machine.facts(), machine.sends_partial()}};
}

}  // namespace gyre::schedule
