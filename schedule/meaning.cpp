#include "schedule/meaning.h"

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
  if (const Id doubled = expressions.doubled(id); doubled != Expressions::none) return machine.refuse(doubled);
  if (!expressions.complete(id)) return is(fmt::format("lacks rank {}'s part", expressions.first_missing(id)));
  return {};
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

Meaning interpret(const Schedule& schedule, const Wiring& wiring, bool in_place) {
  ExpressionMachine machine(schedule, wiring, in_place);
  for (uint32_t c = 0; c < schedule.channels; ++c) {
    if (std::string fault = machine.run(c); !fault.empty()) return {std::move(fault), {}};
  }
  std::string fault = machine.left_over();
  if (fault.empty()) fault = wrong_result(machine);
  if (!fault.empty()) return {std::move(fault), {}};
  return {{}, {machine.facts()}};
}

}  // namespace gyre::schedule
