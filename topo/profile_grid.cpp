#include "topo/profile_grid.h"

#include <algorithm>
#include <bit>

#include "topo/families.h"
#include "topo/grid_phases.h"

namespace gyre::topo {
namespace {

// All that a position does in a phase.
void add(Load& load, const PlacedGrid& grid, const GridPhases& phases, size_t at, int position) {
  const Phase& phase = phases[at];
  const int64_t others = phase.extent - 1;
  std::array<int64_t, link_kinds> out{}, in{};  // messages
  if (phase.exchange == Exchange::direct) {
    out = in = grid.partners(phase, position);
  } else {
    out[grid.link(phase, position, 1)] = others;
    in[grid.link(phase, position, -1)] = others;
  }
  for (const size_t link : {inside, between}) {
    load.out[link] += out[link] * phase.chunks;
    load.in[link] += in[link] * phase.chunks;
    load.work.written[link] += out[link] * phase.chunks;
    load.work.ends[link] += out[link] + in[link];
  }
  load.work.steps += others + (phases.joined(at) ? 0 : 1);
  (phase.reduces ? load.work.reduced : load.work.copied) += others * phase.chunks;
  if (phases.copies_own(at)) ++load.work.copied;
}

// A surplus rank gives all it has, so many chunks, to the next, and gets all back.
void fold(std::vector<Load>& ranks, const Placement& placement, Rank surplus, int64_t all) {
  const size_t link = placement.link(surplus, surplus + 1);
  for (const Rank rank : {surplus, surplus + 1}) {
    Load& load = ranks[static_cast<size_t>(rank)];
    load.out[link] += all, load.in[link] += all;
    load.work.written[link] += all, load.work.ends[link] += 2, load.work.steps += 2;
    (rank == surplus ? load.work.copied : load.work.reduced) += all;
  }
}

Profile profile_of(const Shape& shape, const PlacedGrid& grid, const std::vector<Dimension>& dimensions) {
  const GridPhases phases(grid, shape.collective, dimensions);
  const int positions = grid.positions();
  Tally copy;  // of one rank alone
  copy.steps = copy.copied = 1;
  Profile out;
  out.channels = shape.channels;
  out.chunks = shape.channels * (shape.collective == Collective::all_reduce ? static_cast<uint32_t>(positions) : 1);
  for (size_t i = 0; i < measures; ++i) out.path[i] = phases.size() == 0 ? copy : phases.path(static_cast<Longest>(i));
  out.span = out.path;
  for (size_t i = 0; i < phases.size(); ++i) {
    out.longest_message = std::max(out.longest_message, static_cast<uint32_t>(phases[i].chunks));
    if (!phases.joined(i)) ++out.waits[phases.uses(i, between) ? between : inside];
    for (const size_t link : {inside, between}) {
      if (!phases.uses(i, link)) continue;
      out.widest[link] = std::max(out.widest[link], phases[i].chunks);
      out.messages[link] = std::max(out.messages[link], phases.messages(i));
    }
  }
  std::vector<Load> ranks(static_cast<size_t>(shape.ranks));
  for (int p = 0; p < positions; ++p) {
    Load& load = ranks[static_cast<size_t>(grid.member(p))];
    if (phases.size() == 0) load.work = copy;
    for (size_t i = 0; i < phases.size(); ++i) add(load, grid, phases, i, p);
  }
  for (int i = 0; i < shape.ranks - positions; ++i) fold(ranks, grid.placement(), 2 * i, positions);
  take_loads(out, ranks, grid.placement(), shape.channels);
  for (const size_t link : {inside, between}) out.port[link].around = phases.around_port(link);
  out.node_port.around = out.port[between].around;
  return out;
}

}  // namespace

Profile profile_of_grid(const Shape& shape, const Placement& placement, const std::vector<Dimension>& dimensions) {
  return profile_of(shape, PlacedGrid(placement, shape.ranks, {}), dimensions);
}

std::optional<Profile> profile_of_folded(const Shape& shape, const Placement& placement) {
  if (!folds(shape)) return {};
  const auto active = static_cast<int>(std::bit_floor(static_cast<unsigned>(shape.ranks)));
  const int surplus = shape.ranks - active;
  std::vector<Rank> members;
  members.reserve(static_cast<size_t>(active));
  for (int i = 0; i < active; ++i) members.push_back(i < surplus ? 2 * i + 1 : i + surplus);
  const int64_t whole = active;
  std::array<bool, link_kinds> used{};
  for (int i = 0; i < surplus; ++i) used[placement.link(2 * i, 2 * i + 1)] = true;
  const size_t link = used[between] ? between : inside;
  Tally folding = hops_over(link, 2, 2 * whole);  // to the partner at the beginning, and from it at the end
  folding.ends[link] = 4, folding.written[link] = 2 * whole, folding.steps = 4;
  folding.reduced = folding.copied = whole;
  Profile out = profile_of(shape, PlacedGrid(placement, active, std::move(members)), along(prime_factors(active), Exchange::direct));
  for (Tally& path : out.path) path += folding;
  out.span = out.path;
  ++out.waits[link];
  out.longest_message = static_cast<uint32_t>(active);
  for (const size_t kind : {inside, between}) {
    if (used[kind]) out.widest[kind] = whole, out.messages[kind] = std::max<int64_t>(out.messages[kind], 1);
  }
  return out;
}

}  // namespace gyre::topo
