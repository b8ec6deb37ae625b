#include "topo/profile_grid.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <tuple>

namespace gyre::topo {

Tally operator*(Tally a, int64_t times) {
  a.pairwise(a, [&](int64_t& own, int64_t) { own *= times; });
  return a;
}

Tally most_of_each(Tally a, const Tally& b) {
  a.pairwise(b, [](int64_t& own, int64_t other) { own = std::max(own, other); });
  return a;
}

bool less(const Tally& a, const Tally& b, Longest measure) {
  const bool hops_first = measure == Longest::network_hops || measure == Longest::local_hops;
  const size_t near = measure == Longest::local_hops || measure == Longest::local_chunks ? inside : between;
  const size_t far = 1 - near;
  const auto Tally::*first = hops_first ? &Tally::hops : &Tally::port;
  const auto Tally::*second = hops_first ? &Tally::port : &Tally::hops;
  const auto processed = [](const Tally& t) { return t.written[inside] + t.written[between] + t.reduced + t.copied; };
  const auto on = [](auto count, size_t link) { return [=](const Tally& t) { return (t.*count)[link]; }; };
  // Counts are looked at only until one differs: this is most of what a walk does.
  const auto in_order = [&](const auto&... of) {
    auto order = std::strong_ordering::equal;
    static_cast<void>(((order = std::invoke(of, a) <=> std::invoke(of, b), std::is_neq(order)) || ...));
    return std::is_lt(order);
  };
  if (measure == Longest::processing && processed(a) != processed(b)) return processed(a) < processed(b);
  return in_order(on(first, near), on(first, far), on(second, near), on(second, far), processed, &Tally::reduced, on(&Tally::written, near),
                  on(&Tally::written, far), on(&Tally::ends, near), on(&Tally::ends, far), &Tally::steps);
}

void take_busiest(std::array<Tally, 2>& busiest, const Tally& work) {
  // Of as many messages the one that writes more inside the node: the other of two such ranks is the busiest by bytes.
  const auto messages = [](const Tally& t) { return std::tuple(t.ends[between], t.ends[inside], t.steps, t.written[inside]); };
  if (less(busiest[0], work, Longest::processing)) busiest[0] = work;
  if (messages(busiest[1]) < messages(work)) busiest[1] = work;
}

void take_loads(Profile& profile, const std::vector<Load>& ranks, const Placement& placement, int64_t channels) {
  std::vector<Load> nodes(static_cast<size_t>(placement.nodes(static_cast<int>(ranks.size()))));
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const Load& load = ranks[rank];
    Load& node = nodes[static_cast<size_t>(placement.node(static_cast<Rank>(rank)))];
    for (const size_t link : {inside, between}) {
      profile.port[link].chunks = std::max({profile.port[link].chunks, load.out[link] * channels, load.in[link] * channels});
      node.out[link] += load.out[link], node.in[link] += load.in[link];
    }
    take_busiest(profile.processor, load.work * channels);
    node.work += load.work;
  }
  for (const Load& node : nodes) {
    profile.node_processor = most_of_each(profile.node_processor, node.work * channels);
    profile.node_port.chunks = std::max({profile.node_port.chunks, node.out[between] * channels, node.in[between] * channels});
  }
}

}  // namespace gyre::topo
