#include "topo/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "schedule/fuse.h"
#include "topo/grid.h"
#include "topo/simulated.h"

namespace gyre::topo {
namespace {

// Schedules that are made only to see which links they use. Steps of a ring, and of most others, grow as the square of the ranks: 1024 have
// millions.
constexpr int most_ranks_looked_at = 1024;

Result<schedule::Schedule> looked_at(std::string_view family, const Shape& shape, const schedule::RankPairs& missing) {
  if (shape.ranks > most_ranks_looked_at)
    return Error{
        Code::invalid_usage,
        fmt::format("a link is missing or slower than others, and which links schedules use is looked at for {} ranks at most, not {}",
                    most_ranks_looked_at, shape.ranks)};
  return schedule::relayed(schedule::fuse(GYRE_TRY(make(family, shape))), missing);
}

Result<Profile> relayed_profile(std::string_view family, const Shape& shape, const Placement& placement,
                                const schedule::RankPairs& missing) {
  return profile(GYRE_TRY(looked_at(family, shape, missing)), placement);
}

// The extents {ranks of a node, nodes}, where nodes are alike.
std::vector<int> node_grid(const Query& query) {
  const int per_node = query.placement.per_node;
  if (per_node <= 0 || query.ranks % per_node != 0) return {};
  return {per_node, query.ranks / per_node};
}

// The grids worth trying: the family's own, and that along whose lines nodes end.
std::vector<std::vector<int>> grids(const Family& family, const Query& query) {
  const std::vector<int> nodes = node_grid(query);
  const bool several = nodes.size() == 2 && nodes[0] > 1 && nodes[1] > 1;
  if (family.grid == GridUse::nodes) return {several ? nodes : std::vector<int>{}};
  std::vector<int> along_nodes;
  if (family.grid == GridUse::lines && several) along_nodes = nodes;
  if (family.grid == GridUse::factors) {
    for (const int extent : several ? nodes : std::vector{query.ranks}) {
      for (const int factor : prime_factors(extent)) along_nodes.push_back(factor);
    }
  }
  if (along_nodes.empty()) return {{}};
  std::vector<int> own;
  for (const Dimension& d : family.lines({query.collective, query.ranks, 1, query.root, {}}).value_or(Lines::value_type())) {
    own.push_back(d.extent);
  }
  return along_nodes == own ? std::vector<std::vector<int>>{{}} : std::vector<std::vector<int>>{{}, along_nodes};
}

// Channels that a shape may have.
std::vector<uint32_t> channels(const Family& family, const Query& query) {
  const uint32_t most = std::max(1U, query.channels / family.channels);
  if (query.shape_channels != 0) return {std::clamp(query.shape_channels / family.channels, 1U, most)};
  return most > 1 ? std::vector<uint32_t>{1, most} : std::vector<uint32_t>{1};
}

// Looks for the candidate's messages over links that are slower: makes bytes dearer as the slowest is. Says why it can't.
std::string slowed(const Query& query, const Candidate& candidate, const schedule::RankPairs& missing, Costs& costs) {
  const bool none_slower = missing.size() == query.overrides.size();
  if (none_slower) return {};
  const auto schedule = looked_at(candidate.family, candidate.shape, missing);
  if (!schedule) return schedule.error().what;
  std::array<double, link_kinds> slowest{1, 1};
  for (const auto& program : schedule->programs) {
    for (const auto& step : program.steps) {
      for (const Rank peer : schedule->peers(step.to)) {
        for (const LinkOverride& link : query.overrides) {
          if (std::minmax(link.a, link.b) != std::minmax(program.rank, peer)) continue;
          double& factor = slowest[query.placement.link(link.a, link.b)];
          factor = std::max(factor, link.slower);
        }
      }
    }
  }
  for (const size_t link : {inside, between}) costs.link[link].beta *= slowest[link];
  return {};
}

// The price by as much as measured times were more, or less, than it at the sizes beside: what jumps between them, where a chunk takes one
// slice more, the price knows. Times are those of one channel, and of sums in any order.
std::optional<double> measured(const Query& query, const Candidate& candidate, const Profile& profile) {
  if (query.shape_channels != 1 || query.ordered || !query.overrides.empty()) return {};
  const int per_node = query.placement.nodes(query.ranks) > 1 ? query.placement.per_node : 0;
  const auto beside = measured_beside(query.costs.measured, candidate.family, candidate.shape, per_node, query.block_bytes);
  if (!beside) return {};
  double off[2];
  for (size_t i = 0; i < 2; ++i) {
    const double priced = price(profile, query.costs, beside->bytes[i], query.cutting).seconds;
    off[i] = priced > 0 ? beside->seconds[i] / priced : 1;
  }
  return candidate.price.seconds * (off[0] + beside->part * (off[1] - off[0]));
}

// Of an element, as sent, in bytes of an input's: in all messages, of which at the least half hold partial sums.
double sent_widths(const Query& query, const Family& family, const Shape& shape, Profiles& profiles) {
  return query.ordered && profiles.order_of(family, shape).sends_partial ? query.partial_widths : 1;
}
double sent_bytes(const Query& query, const Family& family, const Shape& shape, Profiles& profiles) {
  return query.block_bytes * sent_widths(query, family, shape, profiles);
}
// As an engine's plan finds it, which makes slices as short as that.
bool fits_slot(const Query& query, const Candidate& candidate, const Profile& profile, Profiles& profiles) {
  const double element =
      static_cast<double>(query.element_bytes) * sent_widths(query, *family_named(candidate.family), candidate.shape, profiles);
  return profile.longest_message * element <= static_cast<double>(query.cutting.slot_bytes);
}

// An exchange of packets stands for it.
bool goes_by_packets(const Query& query, const Candidate& candidate) {
  const Shape& shape = candidate.shape;
  const bool can = query.packets && query.costs.packets && query.overrides.empty() && !query.ordered && !candidate.measured;
  return can && candidate.family == "one_shot" && shape.collective == Collective::all_reduce && shape.channels == 1 && shape.ranks > 1;
}

Price price_of_packets(const Query& query) {
  Price out;
  out.latency = query.costs.packets->latency;
  out.bytes[inside] = query.ranks * query.block_bytes * query.costs.packets->part;
  out.seconds = out.busiest = out.latency + out.bytes[inside];
  out.hops = 1;
  out.limit = "packets";
  return out;
}

bool goes_mapped(const Query& query, const Candidate& candidate) {
  const Shape& shape = candidate.shape;
  const bool can = query.mapped && query.overrides.empty() && !query.ordered && !candidate.measured;
  return can && can_be_mapped(candidate.family, shape.collective) && shape.channels == 1 && shape.ranks > 1;
}

// Ranks meet twice, each as for a message; and of what a GPU reads and writes of others' memory as much comes to its own.
Price price_of_mapped(const Query& query) {
  const schedule::LinkClass& link = query.costs.link[inside];
  const bool by_rank = query.collective == Collective::reduce_scatter || query.collective == Collective::all_gather;
  const double others = query.ranks - 1;
  Price out;
  out.hops = 2;
  out.latency = 2 * (link.alpha + link.overhead);
  out.bytes[inside] = query.block_bytes * link.beta * (by_rank ? others : 2 * others / query.ranks);
  out.seconds = out.busiest = out.latency + out.bytes[inside];
  out.limit = "mapped";
  return out;
}

Candidate candidate(const Query& query, const Family& family, const std::vector<int>& grid, uint32_t channels, Profiles& profiles) {
  Candidate out{family.name, {query.collective, query.ranks, channels, query.root, grid, query.ordered}, {}, {}, {}, {}};
  out.refused = refusal(family, out.shape);
  if (lacks_nodes(family, out.shape)) {
    const bool on_one_node = query.placement.nodes(query.ranks) == 1;
    out.refused = on_one_node ? "all ranks are on one node" : "needs nodes of the same number of ranks, more than one";
  }
  if (out.refused.empty() && query.channels < family.channels) {
    out.refused = fmt::format("needs {} channels, and {} is allowed", family.channels, query.channels);
  }
  if (out.refused.empty() && query.ordered) out.refused = profiles.order_of(family, out.shape).refusal;
  if (!out.refused.empty()) return out;
  const schedule::RankPairs missing = missing_pairs(query.overrides);
  const Result<Profile>& profile = profiles.of(family.name, out.shape, query.placement, missing);
  if (!profile) {
    out.refused = profile.error().what;
  } else if (!fits_slot(query, out, *profile, profiles)) {
    out.refused = fmt::format("its messages of {} chunks don't fit a slot of {} bytes", profile->longest_message, query.cutting.slot_bytes);
  } else {
    Costs costs = query.costs;
    out.refused = slowed(query, out, missing, costs);
    out.price = price(*profile, costs, sent_bytes(query, family, out.shape, profiles), query.cutting);
    out.measured = measured(query, out, *profile);
    out.by_packets = goes_by_packets(query, out);
    if (out.by_packets) out.price = price_of_packets(query);
    out.mapped = goes_mapped(query, out);
    if (out.mapped) out.price = price_of_mapped(query);
  }
  return out;
}

constexpr double alike = 1.03;         // weights that differ by less are the same to who measures
constexpr double rounding = 1 + 1e-9;  // and by less are so but for rounding

bool crowded(const Query& query) {
  const int ranks = query.placement.per_node > 0 ? query.placement.per_node : query.ranks;
  return query.costs.processors_per_node > 0 && query.costs.processors_per_node < ranks;
}
// Ranks of a node share processors, and the kernel moves what they send. Over slots this has been measured, too, and chose worse
// (perf/results/2026-11-23-collectives).
bool shares_processors(const Query& query) { return !query.slots && crowded(query); }

// Of equals the one of the fewest channels comes first, whose slots and sockets are the least to keep in caches, of these the one with the
// fewest messages one after another, unless ranks share processors (below), and then the families' order decides.
auto place_among_equals(const Query& query, const Candidate& candidate) {
  const Family* const family = family_named(candidate.family);
  return std::tuple(family->channels * candidate.shape.channels, crowded(query) ? 0 : candidate.price.hops, family - families().data());
}

// The lightest first. Where ranks of one node share processors, of those that weigh as much as the lightest: with a root, first the one
// whose busiest rank has the least to do; else the one with the fewest messages one after another, which passes on the least of what has
// gone from the caches meanwhile. (Slots of more connections would have gone, too.)
void sort(std::vector<Candidate>& candidates, const Query& query) {
  std::stable_sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
    return a.refused.empty() && weighed(query, a) < weighed(query, b);
  });
  const auto beyond = [&](double factor) {
    const double most = factor * weighed(query, candidates.front());
    return std::ranges::find_if(candidates, [&](const Candidate& c) { return !c.refused.empty() || weighed(query, c) > most; });
  };
  std::stable_sort(candidates.begin(), beyond(rounding),
                   [&](const Candidate& a, const Candidate& b) { return place_among_equals(query, a) < place_among_equals(query, b); });
  if (!shares_processors(query) || query.placement.nodes(query.ranks) > 1) return;
  if (candidates.front().measured) return;  // with all that
  std::stable_sort(candidates.begin(), beyond(alike), [&](const Candidate& a, const Candidate& b) {
    return rooted(query.collective) ? a.price.busiest < b.price.busiest : a.price.hops < b.price.hops;
  });
}

constexpr double most_above = 1.25;  // of a simulated time, a price that must be looked at

// Sizes that are played as one, the least of them: a quarter of an octave.
double least_alike(double bytes) {
  int exponent = 0;
  const double mantissa = std::frexp(bytes, &exponent);
  return std::ldexp(std::floor(mantissa * 8) / 8, exponent);
}

// The price by as much as the simulated time is more, or less, than it at the least size of its kind.
std::optional<double> simulated(const Query& query, const Candidate& candidate, Profiles& profiles) {
  if (candidate.by_packets || candidate.mapped) return candidate.price.seconds;  // of which nothing is simulated
  const double bytes = least_alike(sent_bytes(query, *family_named(candidate.family), candidate.shape, profiles));
  const Result<Profile>& profile = profiles.of(candidate.family, candidate.shape, query.placement);
  const auto seconds = profiles.simulated(query, candidate.family, candidate.shape, bytes);
  const double priced = price(*profile, query.costs, bytes, query.cutting).seconds;
  if (!seconds || priced == 0) return {};
  return candidate.price.seconds * (*seconds / priced);
}

// A price is the largest of several bounds, and too low where two of them do not overlap; candidates are often nearer to each other than
// to their prices. So those that may be the lightest are played, from the lightest on: all whose price is not beyond the least time. None
// where one of these is too large for it, since its price says nothing beside a simulated time; nor where the system decides which rank
// runs next, which the simulator does not know. True: the order may be another.
bool play(std::vector<Candidate>& candidates, const Query& query, Profiles& profiles) {
  const bool by_times = std::ranges::any_of(candidates, [](const Candidate& c) { return c.measured.has_value(); });
  if (!query.plays || by_times || crowded(query) || !query.overrides.empty()) return false;
  double least = std::numeric_limits<double>::infinity();
  for (Candidate& candidate : candidates) {
    if (!candidate.refused.empty() || weighed(query, candidate.price) > most_above * least) break;
    candidate.simulated = simulated(query, candidate, profiles);
    if (!candidate.simulated) {
      for (Candidate& other : candidates) other.simulated.reset();
      return false;
    }
    least = std::min(least, weighed(query, candidate));
  }
  return true;
}

// All that a simulation depends on beside its Key.
std::vector<double> played_on(const Query& query, double block_bytes) {
  const Costs& costs = query.costs;
  std::vector<double> out{block_bytes, costs.rank.gamma, costs.rank.copy, costs.rank.step};
  for (const schedule::LinkClass& link : costs.link) {
    out.insert(out.end(), {link.alpha, link.beta, link.overhead, link.by_processor ? 1.0 : 0.0});
  }
  for (const int count : {costs.nics_per_node, costs.processors_per_node}) out.push_back(count);
  const schedule::Cutting& cutting = query.cutting;
  for (const size_t number : {cutting.slot_bytes, size_t{cutting.slices}, cutting.unit_bytes, size_t{cutting.credits}}) {
    out.push_back(static_cast<double>(number));
  }
  return out;
}

}  // namespace

bool can_be_mapped(std::string_view family, Collective collective) {
  const bool by_blocks = collective == Collective::reduce_scatter || collective == Collective::all_gather;
  return family == (by_blocks ? "one_shot" : "two_shot");
}

double weighed(const Query& query, const Price& price) {
  double seconds = price.seconds;
  if (shares_processors(query)) seconds = std::max(seconds, price.shared + (1 - 1.0 / query.costs.processors_per_node) * price.apart);
  return seconds + (rooted(query.collective) ? price.busiest : 0);
}

double weighed(const Query& query, const Candidate& candidate) {
  if (candidate.measured) return *candidate.measured;
  if (!candidate.simulated) return weighed(query, candidate.price);
  Price played = candidate.price;
  played.seconds = *candidate.simulated;
  return weighed(query, played);
}

const Result<Profile>& Profiles::of(std::string_view family, const Shape& shape, const Placement& placement,
                                    const schedule::RankPairs& missing) {
  Key key{family, shape.collective, shape.ranks, shape.channels, shape.root, shape.grid, placement.per_node, shape.ordered, missing};
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  auto made = missing.empty() ? profile(family, shape, placement) : relayed_profile(family, shape, placement, missing);
  return known_.emplace(std::move(key), std::move(made)).first->second;
}

const Order& Profiles::order_of(const Family& family, const Shape& shape) {
  Key key{family.name, shape.collective, shape.ranks, shape.channels, shape.root, shape.grid, 0, shape.ordered, schedule::RankPairs()};
  const auto found = orders_.find(key);
  if (found != orders_.end()) return found->second;
  return orders_.emplace(std::move(key), order(family, shape)).first->second;
}

std::optional<double> Profiles::simulated(const Query& query, std::string_view family, const Shape& shape, double block_bytes) {
  Key key{family,     shape.collective,         shape.ranks,   shape.channels,       shape.root,
          shape.grid, query.placement.per_node, shape.ordered, schedule::RankPairs()};
  const auto [found, is_new] = simulated_.try_emplace({std::move(key), played_on(query, block_bytes)});
  if (!is_new) return found->second;
  if (const Result<Profile>& profile = of(family, shape, query.placement)) {
    found->second = sampled_seconds(query, *profile, family, shape, block_bytes);
  }
  return found->second;
}

Choice choose(const Query& query, Profiles& profiles) {
  Choice out;
  for (const Family& family : families()) {
    for (const auto& grid : grids(family, query)) {
      for (const uint32_t count : channels(family, query)) {
        out.candidates.push_back(candidate(query, family, grid, count, profiles));
        if (!out.candidates.back().refused.empty()) break;  // of the other numbers of channels the same would be said
      }
    }
  }
  sort(out.candidates, query);
  if (play(out.candidates, query, profiles)) sort(out.candidates, query);
  return out;
}

const Candidate* Choice::cheapest(std::string_view family) const {
  for (const Candidate& candidate : candidates) {
    if (candidate.family == family && candidate.refused.empty()) return &candidate;
  }
  return nullptr;
}

const Candidate* rule_of_thumb(const Query& query, const Choice& choice) {
  const Candidate* ring = choice.cheapest("ring");
  const Candidate* tree = choice.cheapest("double_tree") != nullptr ? choice.cheapest("double_tree") : choice.cheapest("tree");
  const Candidate* hierarchical = choice.cheapest("hierarchical");
  const bool several = query.placement.nodes(query.ranks) > 1 && query.placement.per_node > 1;
  if (ring != nullptr) {
    const double limit = ring->price.seconds;
    if (query.block_bytes < 1 << 20 && tree != nullptr && tree->price.seconds < 0.8 * limit) return tree;
    if (several && hierarchical != nullptr && hierarchical->price.seconds < 1.2 * limit) return hierarchical;
  }
  return choice.best();
}

}  // namespace gyre::topo
