#include "topo/direct_cost.h"

#include <algorithm>
#include <set>

namespace gyre::topo {
namespace {

// What a rank waits for, and bytes that it moves.
struct Moved {
  std::set<Rank> others;
  double shown = 0;     // to the board, and from it where others have shown
  double touched = 0;   // of the ranks' buffers
  double attached = 0;  // of those, read by system calls
  double calls = 0;     // of the system
};

Moved moved(const schedule::Direct& direct, Rank rank, double block_bytes, BufferAccess access) {
  const schedule::Layout& layout = direct.layout;
  const double chunk = block_bytes / layout.chunks;
  Moved out;
  for (const schedule::Pass& pass : direct.passes[static_cast<size_t>(rank)]) {
    for (const schedule::Spot from : pass.from) {
      (direct.staged && from.rank != rank ? out.shown : out.touched) += chunk;
      if (from.rank == rank) continue;
      out.others.insert(from.rank);
      out.calls += 1;
      out.attached += chunk;
    }
    out.touched += chunk * static_cast<double>(pass.to.size());
  }
  if (direct.staged && layout.has_input(rank)) out.shown += block_bytes * layout.input_blocks();
  if (access != BufferAccess::bounced) return out;
  const auto [read, written] = touched_by_others(direct, rank);
  out.touched += 2 * chunk * static_cast<double>(read.size() + written.size());
  return out;
}

double buffer_bytes(const schedule::Layout& layout, double block_bytes) {
  double blocks = 0;
  for (Rank rank = 0; rank < layout.ranks; ++rank) {
    blocks += layout.has_input(rank) ? layout.input_blocks() : 0;
    blocks += layout.has_output(rank) ? layout.output_blocks() : 0;
  }
  return blocks * block_bytes;
}

}  // namespace

std::string_view name(BufferAccess access) {
  static constexpr std::string_view names[] = {"mapped", "bounced", "attached"};
  return names[static_cast<size_t>(access)];
}

Price price(const schedule::Direct& direct, const DirectCosts& costs, double block_bytes, int processors, BufferAccess access) {
  const schedule::Layout& layout = direct.layout;
  const double each = buffer_bytes(layout, block_bytes) <= costs.cache_bytes ? costs.cached : costs.memory;
  Price busiest;
  Price all;
  size_t awaited = direct.staged ? 0 : static_cast<size_t>(layout.ranks) - 1;  // mapped, all must have come
  for (Rank rank = 0; rank < layout.ranks; ++rank) {
    const Moved work = moved(direct, rank, block_bytes, access);
    awaited = std::max(awaited, work.others.size());
    Price own;
    own.bytes[inside] = work.shown * costs.shown;
    own.computing = work.touched * each;
    if (access == BufferAccess::attached) own.computing += work.calls * costs.attaching + work.attached * costs.attached;
    own.seconds = own.bytes[inside] + own.computing;
    if (own.seconds > busiest.seconds) busiest = own;
    all.bytes[inside] += own.bytes[inside];
    all.computing += own.computing;
  }
  busiest.limit = "a rank's own part";
  if (processors > 0 && (all.bytes[inside] + all.computing) / processors > busiest.seconds) {
    busiest.bytes[inside] = all.bytes[inside] / processors;
    busiest.computing = all.computing / processors;
    busiest.limit = "the host's processors";
  }
  busiest.latency = costs.meeting + costs.peer * static_cast<double>(awaited) + (direct.staged ? 0 : costs.leaving);
  busiest.seconds = busiest.latency + busiest.bytes[inside] + busiest.computing;
  return busiest;
}

}  // namespace gyre::topo
