// One shot's all-to-all: a rank sends to the ranks after it in turn, copies its own block, and receives from the ranks before it in turn.
// As nobody sends after it has received, no way passes more than one message, and where a rank stands in its node says all.
#include <algorithm>

#include "topo/profile_grid.h"

namespace gyre::topo {
namespace {

// Of the ranks after a rank, those from the first to the last are over links of one kind, though not all between them need be.
struct Reach {
  int first = 0;  // 0: none is
  int last = 0;
};

class AllToAll {
 public:
  AllToAll(const Shape& shape, const Placement& placement) : ranks_(shape.ranks), placement_(placement) {}

  // How far after the rank the others on its node are, or those on other nodes. Of the ranks before it: from here() to there() swapped.
  Reach reach(Rank rank, size_t link, bool before = false) const {
    const int next = before ? here(rank) : there(rank);             // in this direction, before the node ends
    const int back = ranks_ - (before ? there(rank) : here(rank));  // where the node begins again, once around
    if (link == between) return next + 1 < back ? Reach{next + 1, back - 1} : Reach{};
    if (next == 0 && back == ranks_) return {};
    return {next > 0 ? 1 : back, back < ranks_ ? ranks_ - 1 : next};
  }
  // The rank's first `count` sends.
  Tally sends(Rank rank, int count) const {
    Tally out = messages(rank, count);
    out.written = out.ends;
    return out;
  }
  // Its last `count` receives.
  Tally receives(Rank rank, int count) const {
    Tally out = messages(rank, count);
    out.copied = count;
    return out;
  }
  Tally program(Rank rank) const {
    Tally own;
    own.copied = own.steps = 1;
    return sends(rank, ranks_ - 1) + own + receives(rank, ranks_ - 1);
  }
  // From the message that `to` receives from so far before it to the end.
  Tally arriving(Rank to, int distance, size_t link) const {
    Tally out = receives(to, ranks_ - distance);
    out.hops[link] = 1;
    return out;
  }
  Rank after(Rank rank, int distance) const { return static_cast<Rank>((int64_t{rank} + distance) % ranks_); }
  Rank before(Rank rank, int distance) const { return after(rank, ranks_ - distance); }

 private:
  // Ranks of the same node before this one, and after it.
  int here(Rank rank) const { return placement_.per_node > 0 ? rank % placement_.per_node : rank; }
  int there(Rank rank) const {
    const int last = placement_.per_node > 0 ? (placement_.node(rank) + 1) * placement_.per_node : ranks_;
    return std::min(last, ranks_) - 1 - rank;
  }
  // With the first `count` ranks after this one: the last that it receives from are those too.
  Tally messages(Rank rank, int count) const {
    Tally out;
    out.ends[inside] = std::min(count, there(rank)) + std::max(0, count - (ranks_ - 1 - here(rank)));
    out.ends[between] = count - out.ends[inside];
    out.steps = count;
    return out;
  }

  int ranks_;
  Placement placement_;
};

// The longest ways by each measure: a program, or all sends to the last rank over a link, and what that receives from then on.
void paths(Profile& out, const AllToAll& all, int ranks) {
  for (Rank r = 0; r < ranks; ++r) {
    std::array<Tally, 1 + link_kinds> ways{all.program(r)};
    for (const size_t link : {inside, between}) {
      const int last = all.reach(r, link).last;
      if (last == 0) continue;
      ways[1 + link] = all.sends(r, last) + all.arriving(all.after(r, last), last, link);
      ways[1 + link].port[link] = 1;
    }
    for (size_t i = 0; i < measures; ++i) {
      for (const Tally& way : ways) {
        if (less(out.path[i], way, static_cast<Longest>(i))) out.path[i] = way;
      }
    }
  }
  out.span = out.path;
}

// Around a port: from the first send that uses it, and from the last.
void ports(Profile& out, const AllToAll& all, int ranks, uint32_t channels) {
  for (Rank r = 0; r < ranks; ++r) {
    const Tally work = all.program(r);
    for (const size_t link : {inside, between}) {
      const int64_t chunks = work.written[link] * channels;
      if (chunks == 0) continue;
      const Reach to = all.reach(r, link);
      const Reach from = all.reach(r, link, true);
      for (const Tally& around : {all.sends(r, to.first) + all.arriving(all.after(r, to.last), to.last, link),
                                  all.sends(all.before(r, from.first), from.first) + all.arriving(r, from.last, link)}) {
        Busiest& busiest = out.port[link];
        const bool more = chunks > busiest.chunks || (chunks == busiest.chunks && less(busiest.around, around, Longest::network_hops));
        if (more) busiest = {chunks, around};
      }
    }
  }
}

}  // namespace

std::optional<Profile> profile_of_all_to_all(const Shape& shape, const Placement& placement) {
  if (shape.collective != Collective::all_to_all) return {};
  const AllToAll all(shape, placement);
  Profile out;
  out.channels = out.chunks = shape.channels;
  std::vector<Load> loads(static_cast<size_t>(shape.ranks));
  for (Rank r = 0; r < shape.ranks; ++r) {
    Load& load = loads[static_cast<size_t>(r)];
    load.work = all.program(r);
    load.in = load.out = load.work.written;
    for (const size_t link : {inside, between}) out.widest[link] = std::max(out.widest[link], std::min<int64_t>(load.out[link], 1));
  }
  out.messages = out.widest;  // one chunk, once
  if (shape.ranks > 1) out.waits[out.widest[between] > 0 ? between : inside] = 1;
  take_loads(out, loads, placement, shape.channels);
  paths(out, all, shape.ranks);
  ports(out, all, shape.ranks, shape.channels);
  if (out.node_port.chunks == 0) return out;
  // A node's last rank begins with the next node, and its first one ends with the node before.
  Tally& around = out.node_port.around;
  around.hops[between] = around.written[between] = around.copied = 1;
  around.ends[between] = around.steps = 2;
  return out;
}

}  // namespace gyre::topo
