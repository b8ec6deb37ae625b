#include "schedule/direct.h"

#include <fmt/format.h>

#include <map>

namespace gyre::schedule {
namespace {

// The input chunks of which an output chunk is made, in the order of ranks.
std::vector<Spot> parts(const Layout& layout, Rank rank, uint32_t chunk) {
  const Part part = layout.expected(rank, chunk);
  if (part.rank != every_rank) return {{part.rank, part.chunk}};
  std::vector<Spot> all;
  all.reserve(static_cast<size_t>(layout.ranks));
  for (Rank r = 0; r < layout.ranks; ++r) all.push_back({r, part.chunk});
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
  Direct direct{staged, layout, {}};
  for (Rank rank = 0; rank < layout.ranks; ++rank) direct.passes.push_back(own_output(layout, rank));
  return direct;
}

}  // namespace

Direct staged(Layout layout) { return own_outputs(layout, true); }

Direct read(Layout layout) { return own_outputs(layout, false); }

Direct mapped(Layout layout) {
  const bool same_everywhere = layout.collective == Collective::all_reduce || layout.collective == Collective::broadcast;
  const bool shared_work = same_everywhere || layout.collective == Collective::reduce;
  layout.chunks = shared_work ? static_cast<uint32_t>(layout.ranks) : 1;
  Direct direct{false, layout, {}};
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

std::string fault(const Direct& direct, bool in_place) {
  const Layout& layout = direct.layout;
  const Cells cells(layout, 0, in_place);
  std::map<std::pair<Rank, uint32_t>, bool> written;
  std::map<std::pair<Rank, size_t>, std::vector<Access>> accesses;
  for (Rank by = 0; by < layout.ranks; ++by) {
    const auto& passes = direct.passes[static_cast<size_t>(by)];
    for (size_t i = 0; i < passes.size(); ++i) {
      for (const Spot from : passes[i].from) {
        if (!layout.has_input(from.rank) || from.chunk >= layout.input_chunks()) return text(from, "input") + " does not exist";
        // What others have shown is a copy that nobody writes.
        if (!direct.staged || from.rank == by)
          accesses[{from.rank, cells.of(from.rank, Buffer::input, from.chunk)}].push_back({by, i, false});
      }
      for (const Spot to : passes[i].to) {
        if (!layout.has_output(to.rank) || to.chunk >= layout.output_chunks()) return text(to, "output") + " does not exist";
        if (direct.staged && to.rank != by) return fmt::format("rank {} cannot reach {}", by, text(to, "output"));
        if (parts(layout, to.rank, to.chunk) != passes[i].from)
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
