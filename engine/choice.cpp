#include "engine/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "engine/memory.h"
#include "engine/network.h"
#include "engine/nics.h"
#include "kernels/canonical.h"
#include "kernels/packet.h"
#include "topo/algorithms.h"
#include "topo/joined.h"

namespace gyre::engine {
namespace {

constexpr size_t channels_unasked = 2;  // what any family needs
constexpr double most_at_a_time = 1024;

// What is known of ranks in the order of their numbers: hosts where those of each follow each other, whatever the order of hosts.
Placed numbered(const Placed& placed) {
  if (placed.order.empty()) return {placed.hosts, {}, {}};
  if (placed.hosts.empty()) return {};
  const auto per_host = static_cast<size_t>(placed.hosts[0]);
  for (size_t position = 0; position < placed.order.size(); ++position) {
    const Rank rank = placed.order[position], first = placed.order[position / per_host * per_host];
    if (rank / placed.hosts[0] != first / placed.hosts[0]) return {};
  }
  return {placed.hosts, {}, {}};
}

// A grid is of rank numbers, and so is the canonical tree.
Placed placed_for(const Circumstances& c, const Call& call) {
  return c.grid.empty() && !must_be_ordered(c, call) ? c.placed : numbered(c.placed);
}

Rank root_of(const Placed& placed, const Call& call) { return rooted(call.collective) ? placed.position(call.root) : call.root; }

topo::Shape shape_of(const Circumstances& c, const Placed& placed, const Call& call, const topo::Family& family) {
  topo::Shape shape{call.collective, c.ranks, 1, root_of(placed, call), {}, must_be_ordered(c, call)};
  shape.channels = static_cast<uint32_t>(std::max<size_t>(1, c.channels / family.channels));
  if (family.grid == topo::GridUse::none) return shape;
  shape.grid = c.grid;
  // One host has no order to offer, and a family may do better by itself.
  const bool several = placed.hosts.size() == 2 && placed.hosts[1] > 1;
  const bool by_hosts = family.grid == topo::GridUse::nodes || (family.grid == topo::GridUse::lines && several);
  if (shape.grid.empty() && by_hosts) shape.grid = placed.hosts;
  return shape;
}

// Channels go along rings or chains of GPUs, each along its own.
std::vector<schedule::RankOrder> orders_of(const Placed& placed, const Call& call, const topo::Shape& shape, const topo::Family& family) {
  const bool several = shape.channels * family.channels > 1 && !placed.channels.rings.empty();
  if (family.orders != nullptr && several) return family.orders(placed.channels, shape, call.root);
  if (placed.order.empty()) return {};
  return {placed.order};
}

// The host that has the most ranks beyond its processors, as far as that matters.
HostLoad most_crowded(const std::vector<Facts>& facts) {
  HostLoad worst;
  for (Rank rank = 0; rank < static_cast<Rank>(facts.size()); ++rank) {
    const HostLoad load = host_load(facts, rank);
    if (load.crowded && (!worst.crowded || load.processors < worst.processors)) worst = load;
  }
  return worst;
}

// Of the constants, by what joins all ranks; "": shared memory.
std::string host_machine(std::string_view over, const HostLoad& load) {
  return fmt::format("host{}{}{}", over.empty() ? "" : "_", over, load.crowded ? "_crowded" : "");
}

// The ways in which a candidate may run: along channels or in the order of places, and by the ranks' numbers, which costs the same, as far
// as prices tell.
std::vector<Choice> ways_to_run(const Circumstances& c, const Call& call, const topo::Candidate& candidate) {
  const Placed placed = placed_for(c, call), plain = numbered(placed);
  Choice way{std::string(candidate.family), candidate.shape, {}, {}};
  way.orders = orders_of(placed, call, way.shape, *topo::family_named(candidate.family));
  std::vector<Choice> all{way};
  if (way.orders.empty() || plain.hosts != placed.hosts) return all;
  way.orders.clear();
  way.shape.root = root_of(plain, call);
  all.push_back(std::move(way));
  return all;
}

Result<Choice> by_price(const Circumstances& c, const Call& call, topo::Profiles& profiles, const Excluded& excluded, bool plays) {
  const topo::Choice priced = topo::choose(query(c, call, plays), profiles);
  for (const topo::Candidate& candidate : priced.candidates) {
    if (!candidate.refused.empty()) break;  // those that follow are, too
    for (Choice& way : ways_to_run(c, call, candidate)) {
      if (excluded.contains(key(way))) continue;
      way.seconds = topo::predicted(candidate);
      return std::move(way);
    }
  }
  const Placed placed = placed_for(c, call);
  if (!c.missing.empty() && !placed.order.empty()) {  // where there is a way depends on who is where
    Circumstances unplaced = c;
    unplaced.placed = numbered(placed);
    return by_price(unplaced, call, profiles, excluded, plays);
  }
  const std::string wanted = topo::text({call.collective, c.ranks, 1, call.root, {}, must_be_ordered(c, call)});
  std::string why;
  for (const topo::Candidate& other : priced.candidates) {
    const bool has_collective = topo::refusal(*topo::family_named(other.family), other.shape).empty();
    if (!other.refused.empty() && has_collective) why += fmt::format("; {}: {}", other.family, other.refused);
  }
  for (const auto& [name, reason] : excluded) why += fmt::format("; {}: {}", name.substr(0, name.find(':')), reason);
  return Error{Code::invalid_usage, fmt::format("no algorithm has {}{}", wanted, why)};
}

}  // namespace

Result<Circumstances> circumstances(const Config& config, const std::vector<Facts>& facts) {
  return circumstances(config, facts, GYRE_TRY(topo::read_constants(*config.constants)));
}

Result<Circumstances> circumstances(const Config& config, const std::vector<Facts>& facts, const topo::ConstantsText& text,
                                    std::vector<std::string> ports) {
  Circumstances c{static_cast<int>(facts.size()),
                  *config.channels,
                  *config.algorithm,
                  {},
                  placed(facts),
                  {},
                  {},
                  *config.numerics == "ordered",
                  *config.memory_bytes,
                  scratch_room(config, facts.size())};
  const topo::Constants constants = GYRE_TRY(topo::constants_for_here(text));
  c.costs = GYRE_TRY(topo::costs_here(constants, text.file, machine(config, facts)));
  const HostLoad load = most_crowded(facts);
  c.ports = std::move(ports);
  const bool by_verbs = hosts_by_verbs(config, facts);
  if (by_verbs && *config.transport == "auto")
    c.costs = topo::joined(std::move(c.costs), GYRE_TRY(topo::costs_here(constants, text.file, host_machine("verbs", load))));
  if (by_verbs) c.costs = GYRE_TRY(by_ports(std::move(c.costs), nics(facts, c.ports)));
  c.costs.processors_per_node = load.crowded ? load.processors : 0;
  c.slots = !all_over_tcp(config, facts);
  const auto credits = static_cast<uint32_t>(*config.slots);
  c.cutting = {.slot_bytes = *config.slot_bytes, .slices = schedule::slices_under_way(credits), .credits = credits};
  const std::string& given = *config.grid;
  if (given.empty()) return c;
  const auto wrong = [&](std::string_view what) { return Error{Code::invalid_argument, fmt::format("GYRE_GRID={}: {}", given, what)}; };
  auto grid = parse_grid(given);
  if (!grid) return wrong(grid.error().what);
  int64_t cells = 1;
  for (const int extent : *grid) cells = std::min<int64_t>(cells * extent, INT32_MAX);
  if (cells != c.ranks) return wrong(fmt::format("has {} places for {} ranks", cells, c.ranks));
  c.grid = *std::move(grid);
  return c;
}

std::string machine(const Config& config, const std::vector<Facts>& facts) {
  std::string over = all_over_tcp(config, facts) ? "tcp" : *config.transport;
  if (over != "tcp" && over != "ucx" && over != "verbs") over.clear();
  return host_machine(over, most_crowded(facts));
}

topo::Costs on_gpus(const topo::Costs& hosts, topo::Costs gpus) {
  const schedule::LinkClass& network = hosts.link[topo::between];
  schedule::LinkClass& through = gpus.link[topo::between];
  through.alpha += network.alpha;
  through.overhead += network.overhead;
  through.beta = std::max(through.beta, network.beta);  // pieces of a message are on both ways at a time
  through.name += " and " + network.name;
  if (gpus.nics_per_node > 0 && network.beta > 0) {
    const double at_a_time = std::floor(std::min(through.beta / network.beta, most_at_a_time));
    gpus.nics_per_node = std::max(gpus.nics_per_node, hosts.nics_per_node * static_cast<int>(at_a_time));
  }
  return gpus;
}

bool must_be_ordered(const Circumstances& c, const Call& call) {
  return c.ordered && reduces(call.collective) && !is_integer(call.type) && call.op != ReduceOp::max && call.op != ReduceOp::min;
}

topo::Query query(const Circumstances& c, const Call& call, bool plays) {
  topo::Query out;
  out.collective = call.collective;
  out.element_bytes = size_of(call.type);
  out.block_bytes = static_cast<double>(call.count * out.element_bytes);
  out.ranks = c.ranks;
  const Placed placed = placed_for(c, call);
  const bool alike = placed.hosts.size() == 2;
  for (const auto& [a, b] : c.missing) out.overrides.push_back({placed.position(a), placed.position(b), 1, true});
  out.root = root_of(placed, call);
  // Hosts of different sizes: as if every rank had a host of its own, which no message is cheaper than.
  out.placement.per_node = alike ? (placed.hosts[1] > 1 ? placed.hosts[0] : 0) : 1;
  out.channels = static_cast<uint32_t>(c.channels == 0 ? channels_unasked : c.channels);
  // One thread drives all channels, so that more of them are no faster by themselves.
  out.shape_channels = static_cast<uint32_t>(std::max<size_t>(1, c.channels));
  out.costs = c.costs;
  if (!alike) out.costs.measured.clear();  // they are of hosts that are
  out.slots = c.slots;
  out.cutting = c.cutting;
  out.plays = plays;
  out.ordered = must_be_ordered(c, call);
  out.mapped = c.ways.mapped && call.count > 0;
  out.packets = c.ways.packets && call.count * size_of(call.type) <= kernels::PacketBuffer::most_bytes;
  out.partial_widths = static_cast<double>(kernels::partial_size(call.type)) / static_cast<double>(size_of(call.type));
  if (out.ordered && call.op == ReduceOp::premul_sum) {  // whose parts travel as partial sums do
    out.block_bytes *= out.partial_widths;
    out.element_bytes = kernels::partial_size(call.type);
    out.partial_widths = 1;
  }
  return out;
}

std::string along(const std::vector<schedule::RankOrder>& orders) {
  if (orders.size() > 1) return fmt::format(", along {} channels over GPUs", orders.size());
  return orders.empty() ? "" : ", in the order of their places";
}

std::string key(const Choice& choice) { return fmt::format("{}: {}{}", choice.family, topo::text(choice.shape), along(choice.orders)); }

void refuse(topo::Choice& from, const Circumstances& c, const Call& call, const Excluded& excluded) {
  for (topo::Candidate& candidate : from.candidates) {
    if (excluded.empty() || !candidate.refused.empty()) break;  // those that follow are, too
    std::string why;
    for (const Choice& way : ways_to_run(c, call, candidate)) {
      const auto found = excluded.find(key(way));
      if (found == excluded.end()) {
        why.clear();
        break;
      }
      why = found->second;
    }
    candidate.refused = std::move(why);
  }
  auto& all = from.candidates;  // clang 14 has no stable_partition of ranges
  std::stable_partition(all.begin(), all.end(), [](const topo::Candidate& candidate) { return candidate.refused.empty(); });
}

Result<Choice> choose(const Circumstances& c, const Call& call, topo::Profiles& profiles, const Excluded& excluded, bool plays) {
  if (c.algorithm == "auto") return by_price(c, call, profiles, excluded, plays);
  const topo::Family* family = topo::family_named(c.algorithm);
  if (family == nullptr) return topo::make(c.algorithm, {}).error();
  const auto named_for = [&](const Placed& placed) {
    const topo::Shape shape = shape_of(c, placed, call, *family);
    return Choice{c.algorithm, shape, orders_of(placed, call, shape, *family), {}};
  };
  Choice named = named_for(placed_for(c, call));
  if (!named.orders.empty() && excluded.contains(key(named))) named = named_for(numbered(c.placed));
  const topo::Shape& shape = named.shape;
  std::string refused = topo::refusal(*family, shape);
  if (topo::lacks_nodes(*family, shape) && c.grid.empty() && c.placed.hosts.empty()) refused = "hosts have different numbers of ranks";
  if (refused.empty() && shape.ordered) refused = profiles.order_of(*family, shape).refusal;
  if (refused.empty() && c.channels != 0 && c.channels < family->channels) {
    return Error{Code::invalid_usage, fmt::format("{} needs {} channels, GYRE_CHANNELS is {}", c.algorithm, family->channels, c.channels)};
  }
  if (refused.empty()) {
    const auto found = excluded.find(key(named));
    if (found == excluded.end()) return named;
    refused = found->second;
  }
  Choice instead = GYRE_TRY(by_price(c, call, profiles, excluded, plays));
  instead.instead = refused;
  return instead;
}

size_t connected_channels(const Config& config) { return std::max(channels_unasked, *config.channels); }

}  // namespace gyre::engine
