#include "schedule/renamed.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "schedule/print.h"

namespace gyre::schedule {
namespace {

Status check_orders(const Schedule& made, std::span<const RankOrder> orders) {
  if (orders.empty()) return Error{Code::invalid_argument, "no order of ranks"};
  const auto root = static_cast<size_t>(made.root);
  for (const RankOrder& order : orders) {
    RankOrder sorted = order;
    std::sort(sorted.begin(), sorted.end());
    bool whole = sorted.size() == static_cast<size_t>(made.ranks);
    for (size_t rank = 0; whole && rank < sorted.size(); ++rank) whole = sorted[rank] == static_cast<Rank>(rank);
    if (!whole) return Error{Code::invalid_argument, fmt::format("no order of {} ranks: {}", made.ranks, fmt::join(order, ", "))};
    if (rooted(made.collective) && order[root] != orders[0][root])
      return Error{Code::invalid_argument, fmt::format("orders with rank {} and rank {} as the root", orders[0][root], order[root])};
  }
  return {};
}

// Nothing: they would not be evenly spaced.
std::optional<Chunks> moved(Chunks chunks, const RankOrder& order, uint32_t per_block) {
  const auto number = [&](uint32_t chunk) { return static_cast<uint32_t>(order[chunk / per_block]) * per_block + chunk % per_block; };
  Chunks out = chunks;
  out.first = number(chunks.first);
  out.stride = 1;
  for (uint32_t i = 1; i < chunks.count; ++i) {
    const uint32_t now = number(chunks[i]);
    if (i == 1 && now > out.first) out.stride = now - out.first;
    if (now != out[i]) return std::nullopt;
  }
  return out;
}

}  // namespace

Rank position_of(const RankOrder& order, Rank rank) { return static_cast<Rank>(std::ranges::find(order, rank) - order.begin()); }

Result<Schedule> renamed(const Schedule& made, std::span<const RankOrder> orders) {
  GYRE_TRY(check_orders(made, orders));
  const Layout layout = made.layout();
  const auto has_blocks = [&](Buffer buffer) {
    return (buffer == Buffer::input && layout.input_blocks() > 1) || (buffer == Buffer::output && layout.output_blocks() > 1);
  };
  Schedule out = made;
  out.root = orders[0][static_cast<size_t>(made.root)];
  for (const Program& program : made.programs) {
    const RankOrder& order = orders[program.channel % orders.size()];
    const Rank rank = order[static_cast<size_t>(program.rank)];
    std::vector<Step> steps = program.steps;
    for (Step& step : steps) {
      for (Chunks* chunks : {&step.src, &step.dst}) {
        if (!chunks->present() || !has_blocks(chunks->buffer)) continue;
        const auto found = moved(*chunks, order, made.chunks);
        if (!found)
          return Error{Code::invalid_usage, fmt::format("{} in another order of ranks: the blocks of {} are not evenly spaced there",
                                                        made.family, describe(made, step))};
        *chunks = *found;
      }
      // Lists are not shared between steps, whose channels may differ in their order.
      for (const Peers list : {step.from, step.to}) {
        for (uint32_t i = list.first; i < list.first + list.count; ++i) out.peer_table[i] = order[static_cast<size_t>(made.peer_table[i])];
      }
    }
    const size_t at = (size_t{program.channel} * made.strands + program.strand) * static_cast<size_t>(made.ranks);
    out.programs[at + static_cast<size_t>(rank)] = {rank, program.channel, program.strand, std::move(steps)};
  }
  return out;
}

}  // namespace gyre::schedule
