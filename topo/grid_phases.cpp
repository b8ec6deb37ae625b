#include "topo/grid_phases.h"

namespace gyre::topo {
namespace {

bool looks_far(Longest measure) { return measure != Longest::local_hops && measure != Longest::local_chunks; }

// Hops and chunks of `hops` hops in a row around a ring.
Tally along_ring(const LineLinks& line, int64_t hops, int64_t chunks, Longest measure) {
  if (line.border == 0) return hops_over(inside, hops, hops * chunks);
  const int64_t across = looks_far(measure) ? (hops + line.border - 1) / line.border : hops / line.border;
  return hops_over(between, across, across * chunks) + hops_over(inside, hops - across, (hops - across) * chunks);
}

// The link on which the longest of a direct exchange's messages comes.
size_t slowest(const LineLinks& line, Longest measure) {
  if (line.partners[between] == 0) return inside;
  if (line.partners[inside] == 0) return between;
  return looks_far(measure) ? between : inside;
}

}  // namespace

GridPhases::GridPhases(const PlacedGrid& grid, Collective collective, const std::vector<Dimension>& dimensions) {
  int weight = 1;
  std::vector<Phase> one_way;
  for (const Dimension& d : dimensions) {
    if (d.extent > 1) one_way.push_back({d.exchange, true, d.extent, weight, grid.positions() / (weight * d.extent)});
    weight *= d.extent;
  }
  if (collective != Collective::all_gather) phases_ = one_way;
  for (Phase& phase : one_way) phase.reduces = false;
  if (collective != Collective::reduce_scatter) phases_.insert(phases_.end(), one_way.rbegin(), one_way.rend());
  for (const Phase& phase : phases_) lines_.push_back(grid.lines(phase));
}

bool GridPhases::uses(size_t at, size_t link) const {
  if (phases_[at].exchange == Exchange::direct) return lines_[at].partners[link] > 0;
  return link == between ? lines_[at].border > 0 : lines_[at].border != 1;
}

int64_t GridPhases::messages(size_t at) const {
  int64_t out = 0;
  for (const Phase& phase : phases_) {
    if (phase.weight == phases_[at].weight) out += phase.exchange == Exchange::ring ? phase.extent - 1 : 1;
  }
  return out;
}

Tally GridPhases::path(size_t first, size_t last, Longest measure) const {
  Tally out;
  for (size_t i = first; i < last; ++i) out += phases_[i].exchange == Exchange::ring ? ring(i, measure) : direct(i, measure);
  return out;
}

Tally GridPhases::ring(size_t at, Longest measure) const {
  const Phase& phase = phases_[at];
  const int64_t hops = phase.extent - 1;
  Tally out = along_ring(lines_[at], hops, phase.chunks, measure);
  if (joined(at)) out = along_ring(lines_[at], 2 * hops, phase.chunks, measure) - out;  // one way around that goes on
  for (const size_t link : {inside, between}) {
    out.written[link] = out.hops[link] * phase.chunks;
    out.ends[link] = 2 * out.hops[link];
  }
  out.steps = hops + (joined(at) ? 0 : 1);
  (phase.reduces ? out.reduced : out.copied) = hops * phase.chunks;
  if (copies_own(at)) ++out.copied;
  return out;
}

// All messages of a rank, where processing decides; else one of them, behind the others at the port.
Tally GridPhases::direct(size_t at, Longest measure) const {
  const Phase& phase = phases_[at];
  const LineLinks& line = lines_[at];
  const size_t link = slowest(line, measure);
  const bool whole = measure == Longest::processing;
  const int64_t others = phase.extent - 1;
  Tally out = hops_over(link, 1, (whole ? 1 : line.partners[link]) * phase.chunks);
  for (const size_t l : {inside, between}) {
    out.ends[l] = line.partners[l] * (whole ? 2 : 1) + (!whole && l == link ? 1 : 0);
    const int64_t sent = whole || !phase.reduces ? line.partners[l] : l == link ? 1 : 0;  // each by a step, or all by one
    out.written[l] = sent * phase.chunks;
  }
  out.steps = (whole ? others : 1) + (joined(at) ? 0 : 1);
  (phase.reduces ? out.reduced : out.copied) = (whole || phase.reduces ? others : 1) * phase.chunks;
  if (copies_own(at)) ++out.copied;
  return out;
}

Tally GridPhases::around_port(size_t link) const {
  size_t first = 0;
  while (first < size() && !uses(first, link)) ++first;
  if (first == size()) return {};
  size_t last = size() - 1;
  while (!uses(last, link)) --last;
  Tally out = path(0, first, Longest::network_hops) + path(last + 1, size(), Longest::network_hops) + hops_over(link, 1, 0);
  const Phase& begins = phases_[first];
  const Phase& ends = phases_[last];
  const bool to_all = begins.exchange == Exchange::direct && !begins.reduces;  // in one step, as is
  const bool from_all = ends.exchange == Exchange::direct && ends.reduces;
  for (const size_t l : {inside, between}) {
    const int64_t sent = to_all ? lines_[first].partners[l] : l == link ? 1 : 0;
    out.ends[l] += sent + (from_all ? lines_[last].partners[l] : l == link ? 1 : 0);
    out.written[l] += sent * begins.chunks;
  }
  (ends.reduces ? out.reduced : out.copied) += (from_all ? ends.extent - 1 : 1) * ends.chunks;
  if (copies_own(first)) ++out.copied;
  out.steps += joined(first) ? 1 : 2;
  return out;
}

}  // namespace gyre::topo
