#include "schedule/direct.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace gyre::schedule {
namespace {

// The input chunks of which an output chunk is made, in the order of ranks, or in another.
std::vector<Spot> parts(const Layout& layout, Rank rank, uint32_t chunk, const std::vector<Rank>& order = {}) {
  const Part part = layout.expected(rank, chunk);
  if (part.rank != every_rank) return {{part.rank, part.chunk}};
  std::vector<Spot> all;
  all.reserve(static_cast<size_t>(layout.ranks));
  for (Rank r = 0; r < layout.ranks; ++r) all.push_back({order.empty() ? r : order[static_cast<size_t>(r)], part.chunk});
  return all;
}

// A rank's output, each chunk by a pass of its own, those of later ranks first, so that not all ranks read from the same.
std::vector<Pass> own_output(const Layout& layout, Rank rank) {
  std::vector<Pass> passes;
  const uint32_t chunks = layout.has_output(rank) ? layout.output_chunks() : 0;
  for (uint32_t i = 0; i < chunks; ++i) {
    const uint32_t chunk = (static_cast<uint32_t>(rank) + i) % chunks;
    passes.push_back({parts(layout, rank, chunk), {{rank, chunk}}});
  }
  return passes;
}

// The output chunks that must hold this.
std::vector<Spot> expecting(const Layout& layout, Part part) {
  std::vector<Spot> all;
  for (Rank rank = 0; rank < layout.ranks; ++rank) {
    for (uint32_t chunk = 0; layout.has_output(rank) && chunk < layout.output_chunks(); ++chunk) {
      const Part expected = layout.expected(rank, chunk);
      if (expected.rank == part.rank && expected.chunk == part.chunk) all.push_back({rank, chunk});
    }
  }
  return all;
}

// A rank's input, each chunk to all who are to have it.
std::vector<Pass> own_input(const Layout& layout, Rank rank) {
  std::vector<Pass> passes;
  for (uint32_t chunk = 0; layout.has_input(rank) && chunk < layout.input_chunks(); ++chunk)
    passes.push_back({{{rank, chunk}}, expecting(layout, {rank, chunk})});
  return passes;
}

std::vector<Rank> all_ranks(const Layout& layout) {
  std::vector<Rank> all(static_cast<size_t>(layout.ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::string text(Spot spot, const char* buffer) { return fmt::format("{}[{}] of rank {}", buffer, spot.chunk, spot.rank); }

// Chunks of memory, by rank, that passes read or write.
struct Access {
  Rank by;
  size_t pass;
  bool writes;
};

// Each rank its own output.
Direct own_outputs(Layout layout, bool staged) {
  layout.chunks = 1;
  Direct direct{staged, layout, {}, {}};
  for (Rank rank = 0; rank < layout.ranks; ++rank) direct.passes.push_back(own_output(layout, rank));
  return direct;
}

}  // namespace

Touched touched_by_others(const Direct& direct, Rank rank) {
  Touched touched;
  const auto take = [&](const std::vector<Spot>& spots, std::set<uint32_t>& chunks) {
    for (const Spot spot : spots) {
      if (spot.rank == rank) chunks.insert(spot.chunk);
    }
  };
  for (Rank by = 0; by < direct.layout.ranks; ++by) {
    if (by == rank) continue;
    for (const Pass& pass : direct.passes[static_cast<size_t>(by)]) take(pass.from, touched.read), take(pass.to, touched.written);
  }
  return touched;
}

std::vector<Rank> order_of(const Schedule& schedule, Rank rank, const Step& step) {
  const auto from = schedule.peers(step.from);
  std::vector<Rank> order(from.begin(), from.end());
  order.insert(order.begin() + std::min(step.place, step.from.count), rank);
  return order;
}

Direct staged(Layout layout) { return own_outputs(layout, true); }

Direct read(Layout layout) { return own_outputs(layout, false); }

Direct mapped(Layout layout) {
  const bool same_everywhere = layout.collective == Collective::all_reduce || layout.collective == Collective::broadcast;
  const bool shared_work = same_everywhere || layout.collective == Collective::reduce;
  layout.chunks = shared_work ? static_cast<uint32_t>(layout.ranks) : 1;
  Direct direct{false, layout, {}, {}};
  for (Rank rank = 0; rank < layout.ranks; ++rank) {
    std::vector<Pass>& passes = direct.passes.emplace_back();
    const auto own = static_cast<uint32_t>(rank);
    if (shared_work) {  // a share of the block, for all who get it
      Pass pass{parts(layout, same_everywhere ? rank : layout.root, own), {}};
      for (Rank r = 0; r < layout.ranks; ++r) {
        if (layout.has_output(r)) pass.to.push_back({r, own});
      }
      passes.push_back(std::move(pass));
    } else if (layout.collective == Collective::gather) {  // all at a time, while the root could take only one after the other
      passes.push_back({{{rank, 0}}, {{layout.root, own}}});
    } else {
      passes = own_output(layout, rank);
    }
  }
  return direct;
}

Direct mapped(const Schedule& schedule) {
  const Layout layout = schedule.layout();
  if (layout.collective == Collective::broadcast) return mapped(layout);
  Direct direct{false, layout, std::vector<std::vector<Pass>>(static_cast<size_t>(layout.ranks)), {}};
  if (!reduces(layout.collective)) {
    for (Rank rank = 0; rank < layout.ranks; ++rank) direct.passes[static_cast<size_t>(rank)] = own_input(layout, rank);
    return direct;
  }
  for (const Program& program : schedule.programs) {
    for (const Step& step : program.steps) {
      const bool of_inputs = step.reduces() && step.src.buffer == Buffer::input && step.association == Association::in_order;
      if (!of_inputs || step.src.count != 1) continue;
      std::vector<Rank> order = order_of(schedule, program.rank, step);
      Pass pass{{}, expecting(layout, {every_rank, step.src.first})};
      for (const Rank rank : order) pass.from.push_back({rank, step.src.first});
      direct.passes[static_cast<size_t>(program.rank)].push_back(std::move(pass));
      direct.order = std::move(order);
    }
  }
  return direct;
}

std::string fault(const Direct& direct, bool in_place) {
  const std::vector<Rank> ranks = all_ranks(direct.layout);
  if (!direct.order.empty() && !std::is_permutation(direct.order.begin(), direct.order.end(), ranks.begin(), ranks.end()))
    return "parts are reduced in an order that is not one of all ranks";
  const Layout& layout = direct.layout;
  const Cells cells(layout, 0, in_place);
  std::map<std::pair<Rank, uint32_t>, bool> written;
  std::map<std::pair<Rank, size_t>, std::vector<Access>> accesses;
  for (Rank by = 0; by < layout.ranks; ++by) {
    const auto& passes = direct.passes[static_cast<size_t>(by)];
    for (size_t i = 0; i < passes.size(); ++i) {
      if (passes[i].to.empty()) return fmt::format("pass {} of rank {} leads nowhere", i, by);
      for (const Spot from : passes[i].from) {
        if (!layout.has_input(from.rank) || from.chunk >= layout.input_chunks()) return text(from, "input") + " does not exist";
        // What others have shown is a copy that nobody writes.
        if (!direct.staged || from.rank == by)
          accesses[{from.rank, cells.of(from.rank, Buffer::input, from.chunk)}].push_back({by, i, false});
      }
      for (const Spot to : passes[i].to) {
        if (!layout.has_output(to.rank) || to.chunk >= layout.output_chunks()) return text(to, "output") + " does not exist";
        if (direct.staged && to.rank != by) return fmt::format("rank {} cannot reach {}", by, text(to, "output"));
        if (parts(layout, to.rank, to.chunk, direct.order) != passes[i].from)
          return text(to, "output") + " is not made of its parts in the order of ranks";
        if (!written.emplace(std::pair(to.rank, to.chunk), true).second) return text(to, "output") + " is written twice";
        const size_t cell = cells.of(to.rank, Buffer::output, to.chunk);
        const Spot first = passes[i].from.front();
        // In place, a copy onto itself writes nothing.
        const bool stays = passes[i].from.size() == 1 && first.rank == to.rank && cells.of(to.rank, Buffer::input, first.chunk) == cell;
        if (!stays) accesses[{to.rank, cell}].push_back({by, i, true});
      }
    }
  }
  for (Rank rank = 0; rank < layout.ranks; ++rank) {
    for (uint32_t chunk = 0; layout.has_output(rank) && chunk < layout.output_chunks(); ++chunk) {
      if (!written.contains({rank, chunk})) return text({rank, chunk}, "output") + " is not written";
    }
  }
  for (const auto& [cell, all] : accesses) {
    for (const Access& write : all) {
      if (!write.writes) continue;
      for (const Access& other : all) {
        // A pass reads an element of all that it reads before it writes it. A rank makes its passes in order.
        const bool ordered = other.by == write.by && other.pass <= write.pass;
        if (!ordered) return fmt::format("memory of rank {} that rank {} writes is read by rank {}", cell.first, write.by, other.by);
      }
    }
  }
  return {};
}

}  // namespace gyre::schedule
