#include <algorithm>

#include "topo/profile_grid.h"

namespace gyre::topo {
namespace {

// All ranks send to the one so far after them, or before.
struct Round {
  int distance = 1;
  int64_t chunks = 1;
};

// Of the way of the most hops, and chunks, over links of one kind; all others are over the other kind.
struct Length {
  int64_t hops = 0;
  int64_t chunks = 0;
};
bool shorter(const Length& a, const Length& b, bool by_hops) {
  return by_hops ? std::pair(a.hops, a.chunks) < std::pair(b.hops, b.chunks) : std::pair(a.chunks, a.hops) < std::pair(b.chunks, b.hops);
}

class Rotation {
 public:
  Rotation(const Shape& shape, const Placement& placement, std::vector<Round> rounds)
      : shape_(shape), placement_(placement), rounds_(std::move(rounds)) {}

  Rank after(Rank rank, int distance) const { return (rank + distance) % shape_.ranks; }
  Rank before(Rank rank, int distance) const { return (rank + shape_.ranks - distance) % shape_.ranks; }
  const std::vector<Round>& rounds() const { return rounds_; }

  // Ranks of all nodes are alike where nodes are: those of one say all.
  int different() const {
    const int per_node = placement_.per_node;
    return per_node == 0 ? 1 : shape_.ranks % per_node == 0 ? std::min(per_node, shape_.ranks) : shape_.ranks;
  }

  Length longest(size_t wanted, bool by_hops) const {
    const auto count = static_cast<size_t>(different());
    std::vector<Length> ways(count), next(count);
    for (const auto& [distance, chunks] : rounds_) {
      next = ways;
      for (Rank r = 0; r < different(); ++r) {
        Length way = ways[static_cast<size_t>(r)];
        const Rank to = after(r, distance);
        if (placement_.link(r, to) == wanted) ++way.hops, way.chunks += chunks;
        Length& there = next[static_cast<size_t>(to % different())];
        if (shorter(there, way, by_hops)) there = way;
      }
      std::swap(ways, next);
    }
    return *std::max_element(ways.begin(), ways.end(), [&](const Length& a, const Length& b) { return shorter(a, b, by_hops); });
  }

  // The longest ways through all rounds, every one a send and a receive.
  void paths(Profile& out, const Tally& work) const {
    Length all;
    for (const Round& round : rounds_) ++all.hops, all.chunks += round.chunks;
    for (size_t i = 0; i < measures; ++i) {
      const auto measure = static_cast<Longest>(i);
      const size_t wanted = measure == Longest::local_hops || measure == Longest::local_chunks ? inside : between;
      const Length way = longest(wanted, measure == Longest::local_hops || measure == Longest::network_hops);
      Tally& path = out.path[i];
      path = work;
      path.hops[wanted] = way.hops, path.hops[1 - wanted] = all.hops - way.hops;
      path.port[wanted] = way.chunks, path.port[1 - wanted] = all.chunks - way.chunks;
      for (const size_t link : {inside, between}) path.ends[link] = 2 * path.hops[link], path.written[link] = path.port[link];
    }
  }

  void loads(Profile& out, const Tally& work) const {
    std::vector<Load> ranks(static_cast<size_t>(shape_.ranks));
    for (Rank r = 0; r < shape_.ranks; ++r) {
      Load& load = ranks[static_cast<size_t>(r)];
      if (r >= different()) {
        load = ranks[static_cast<size_t>(r - different())];
        continue;
      }
      load.work = work;
      std::array<int64_t, link_kinds> waits{};
      for (const auto& round : rounds_) {
        const size_t to = placement_.link(r, after(r, round.distance));
        const size_t from = placement_.link(r, before(r, round.distance));
        load.out[to] += round.chunks, load.in[from] += round.chunks;
        ++waits[from];
        load.work.written[to] += round.chunks;
        ++load.work.ends[to], ++load.work.ends[from];
        for (const size_t link : {to, from}) {
          out.widest[link] = std::max(out.widest[link], round.chunks);
          out.messages[link] = std::max<int64_t>(out.messages[link], 1);
        }
      }
      if (waits[between] >= out.waits[between]) out.waits = waits;  // all rounds, of one kind or the other
    }
    for (Rank r = 0; r < shape_.ranks; ++r) {
      for (const auto& round : rounds_) {
        if (!splits(r, round)) continue;
        const Rank to = after(r, round.distance);
        out.messages[placement_.link(r, to)] = 2;
        for (const Rank rank : {r, to}) {
          Tally& more = ranks[static_cast<size_t>(rank)].work;
          ++more.steps, ++more.ends[placement_.link(r, to)];
        }
      }
    }
    take_loads(out, ranks, placement_, shape_.channels);
  }

  void ports(Profile& out, const Tally& last) const {
    for (const size_t link : {inside, between}) {
      if (out.port[link].chunks == 0) continue;
      Tally& around = out.port[link].around = last;
      around.hops[link] = 1, around.ends[link] = 2, around.written[link] = rounds_.front().chunks, around.steps = 2;
    }
    out.node_port.around = out.port[between].around;
  }

 private:
  // Whether the blocks wrap around, so that what the rank sends in the round is two messages. A reduction goes the other way, from the
  // rank after to the rank; what is split is the same.
  bool splits(Rank rank, const Round& round) const {
    const int stride = 2 * round.distance;
    return round.chunks - 1 - rank / stride > 0 && round.chunks * stride != shape_.ranks;
  }

  const Shape& shape_;
  Placement placement_;
  std::vector<Round> rounds_;
};

}  // namespace

std::optional<Profile> profile_of_pat(const Shape& shape, const Placement& placement) {
  const int ranks = shape.ranks;
  const bool reduces = shape.collective == Collective::reduce_scatter;
  std::vector<Round> rounds;
  for (int distance = 1; distance < ranks; distance *= 2)
    rounds.push_back({distance, (ranks - distance + 2 * distance - 1) / (2 * distance)});
  if (!reduces) std::reverse(rounds.begin(), rounds.end());
  Profile out;
  out.channels = out.chunks = shape.channels;
  Tally work;
  for (const Round& round : rounds) {
    out.longest_message = std::max(out.longest_message, static_cast<uint32_t>(round.chunks));
    (reduces ? work.reduced : work.copied) += round.chunks;
    work.steps += 2;
  }
  if (!reduces || ranks == 1) ++work.copied;
  if (ranks == 1) work.steps = 1;

  Rotation rotation(shape, placement, rounds);
  rotation.paths(out, work);
  rotation.loads(out, work);
  Tally& busiest = out.path[static_cast<size_t>(Longest::processing)];
  if (ranks > 1) busiest.steps = out.processor[1].steps / shape.channels;
  out.span = out.path;
  Tally last;
  if (!rounds.empty()) {
    (reduces ? last.reduced : last.copied) += rounds.back().chunks + (reduces ? 0 : 1);
    rotation.ports(out, last);
  }
  return out;
}

}  // namespace gyre::topo
