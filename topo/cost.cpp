#include "topo/cost.h"

#include <algorithm>
#include <cmath>

namespace gyre::topo {
namespace {

Price operator+(Price a, const Price& b) {
  a.seconds += b.seconds;
  a.latency += b.latency;
  for (size_t link = 0; link < link_kinds; ++link) a.bytes[link] += b.bytes[link];
  a.computing += b.computing;
  return a;
}

Price scaled(Price a, double factor) {
  a.seconds *= factor;
  a.latency *= factor;
  for (double& bytes : a.bytes) bytes *= factor;
  a.computing *= factor;
  return a;
}

Price with_sum(Price a) {
  a.seconds = a.latency + (a.bytes[inside] + a.bytes[between]) + a.computing;
  return a;
}

// Where chunks have `bytes`.
class Pricing {
 public:
  Pricing(const Costs& costs, double bytes) : costs_(costs), bytes_(bytes) {}

  Price operator()(const Tally& tally) const {
    Price out;
    for (size_t link = 0; link < link_kinds; ++link) {
      const schedule::LinkClass& kind = costs_.link[link];
      out.latency += times(tally.hops[link], kind.alpha) + times(tally.ends[link], kind.overhead);
      out.bytes[link] = times(kind.by_processor ? tally.written[link] : tally.port[link], kind.beta) * bytes_;
    }
    out.latency += times(tally.steps, costs_.rank.step);
    out.computing = (times(tally.reduced, costs_.rank.gamma) + times(tally.copied, costs_.rank.copy)) * bytes_;
    return with_sum(out);
  }
  Price port(size_t link, double chunks) const {
    Price out;
    out.bytes[link] = chunks * costs_.link[link].beta * bytes_;
    return with_sum(out);
  }

 private:
  static double times(int64_t count, double each) { return static_cast<double>(count) * each; }

  const Costs& costs_;
  double bytes_;
};

// What a rank does for its other channels before the last one's first message leaves.
Tally posts_before(const Profile& profile, const Tally& path) {
  Tally out;
  const size_t link = path.ends[inside] > 0 ? inside : between;
  if (path.ends[link] > 0) out.ends[link] = static_cast<int64_t>(profile.channels) - 1;
  return out;
}

// A message of one chunk, and the word back that it was taken.
Tally there_and_back(size_t link) {
  Tally out;
  out.hops[link] = out.ends[link] = out.steps = 2;
  out.port[link] = out.written[link] = 1;
  return out;
}

// A program passes one kind of link after the other, each with all slices of a round, though in and out at once. A rank's channels, and
// ranks that share NICs, do so together.
Tally in_turn(const Profile& profile, const Tally& span, const Costs& costs) {
  Tally out;
  for (const size_t link : {inside, between}) {
    const int64_t own = std::min(span.port[link] * profile.channels, profile.port[link].chunks);
    out.port[link] = out.written[link] = own;
    if (link == inside || costs.nics_per_node == 0 || own == 0) continue;
    const int64_t shared = profile.node_port.chunks / costs.nics_per_node;
    out.port[link] = std::max(own, shared * own / profile.port[link].chunks);
  }
  return out;
}

// A round's messages for which nothing else is done meanwhile: their latencies. Senders that wait less send sooner, so that no more of
// them count than one way passes.
Tally waits(const Profile& profile, const Tally& way) {
  Tally out;
  for (const size_t link : {inside, between}) {
    out.hops[link] = std::max<int64_t>(0, std::min(profile.waits[link], way.hops[link]));
    out.ends[link] = 2 * out.hops[link];
  }
  return out;
}

int64_t all_hops(const Tally& tally) { return tally.hops[inside] + tally.hops[between]; }

// What each further slice of a round adds to a way. A program takes a step with all slices before the next one, so that they lengthen the
// way where it goes on inside a program, after messages that were waited for: by all that is done with these. What is sent along the way
// leaves with the first slice, and so does an own block that is copied meanwhile.
Price further(const Pricing& slice, const Profile& profile, const Tally& way) {
  if (all_hops(way) <= 0) return {};
  Tally taken;
  for (const size_t link : {inside, between}) taken.ends[link] = way.ends[link] / 2;
  taken.steps = std::max<int64_t>(0, way.steps - all_hops(way));
  taken.reduced = way.reduced, taken.copied = std::max<int64_t>(0, way.copied - 1);
  return scaled(slice(taken), static_cast<double>(all_hops(waits(profile, way))) / static_cast<double>(all_hops(way)));
}

}  // namespace

Price price(const Profile& profile, const Costs& costs, double block_bytes, const schedule::Cut& cut, uint32_t credits) {
  const auto pieces = static_cast<double>(cut.pieces());
  const Pricing slice(costs, block_bytes / static_cast<double>(profile.chunks) / pieces);
  Price most;
  int64_t hops = 0;
  const auto at_least = [&](const Price& bound, std::string_view limit) {
    if (bound.seconds > most.seconds) most = bound, most.limit = limit;
  };

  const Price waiting = scaled(slice(waits(profile, profile.path[static_cast<size_t>(Longest::network_hops)])), cut.rounds);
  const auto with_further = [&](const Price& one, const Tally& way) { return one + scaled(further(slice, profile, way), cut.slices - 1); };
  for (size_t i = 0; i < measures; ++i) {
    const Price path = slice(profile.path[i] + posts_before(profile, profile.path[i]));
    hops = std::max(hops, all_hops(profile.path[i]));
    const Price later = scaled(with_further(slice(profile.span[i]), profile.span[i]), static_cast<double>(cut.rounds - 1));
    at_least(with_further(path, profile.path[i]) + later, "the way of a round");
    at_least(scaled(slice(in_turn(profile, profile.span[i], costs)), pieces) + waiting, "links one after the other");
    // The last slice sets out after all others have passed the slowest link.
    for (size_t link = 0; link < link_kinds; ++link) {
      at_least(path + slice.port(link, (pieces - 1) * static_cast<double>(profile.widest[link])), "the way of the slices");
    }
  }
  for (const size_t link : {inside, between}) {
    const Busiest& port = profile.port[link];
    // A message sets out when the one that is so many before it on its connection has been taken.
    const int64_t turns = std::max<int64_t>(0, cut.pieces() * profile.messages[link] - 1) / credits;
    at_least(slice(port.around) + scaled(slice(there_and_back(link)), static_cast<double>(turns)), "credits of a connection");
    if (costs.link[link].by_processor) continue;
    at_least(slice(port.around) + slice.port(link, pieces * static_cast<double>(port.chunks)),
             link == inside ? "a port inside the node" : "a port between nodes");
  }
  if (costs.nics_per_node > 0 && !costs.link[between].by_processor) {
    const double chunks = static_cast<double>(profile.node_port.chunks) / costs.nics_per_node;
    at_least(slice(profile.node_port.around) + slice.port(between, pieces * chunks), "a node's NICs");
  }
  double busiest = 0;
  for (const Tally& work : profile.processor) {
    const Price own = scaled(slice(work), pieces);
    at_least(own, "a processor");
    busiest = std::max(busiest, own.seconds);
  }
  const double apart = most.seconds;
  Price shared;
  if (costs.processors_per_node > 0) {
    shared = scaled(slice(profile.node_processor), pieces / costs.processors_per_node);
    at_least(shared, "a node's processors");
  }
  most.shared = shared.seconds;
  most.busiest = busiest;
  most.apart = apart;
  most.hops = hops;
  return most;
}

Price price(const Profile& profile, const Costs& costs, double block_bytes, const schedule::Cutting& cutting) {
  const auto chunk_bytes = std::max<size_t>(1, static_cast<size_t>(std::ceil(block_bytes / static_cast<double>(profile.chunks))));
  return price(profile, costs, block_bytes, schedule::cut(chunk_bytes, 1, profile.longest_message, cutting), cutting.credits);
}

}  // namespace gyre::topo
