#include "perf/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "perf/search.h"
#include "schedule/fuse.h"
#include "schedule/simulate.h"
#include "topo/graph.h"
#include "topo/joined.h"

namespace gyre::perf {
namespace {

// Samples are taken with the default slots.
schedule::Cutting usual(const Sample& s) {
  schedule::Cutting cutting;
  if (s.transport == "tcp") cutting = {.slot_bytes = 256 << 10, .slices = schedule::slices_under_way(4), .credits = 4};
  return cutting;
}
constexpr double ties = 1e-9;  // of prices; then the first is chosen
constexpr int starts = 40;
constexpr double least_number = 1e-13;  // seconds: a factor makes nothing of 0

topo::Shape shape_of(const Sample& s) { return {s.collective, s.ranks, 1, 0, s.grid}; }
topo::Placement placement_of(const Sample& s) { return {s.nodes > 1 ? s.ranks_per_node() : 0}; }

topo::Costs with_processors(topo::Costs costs, const Sample& s) {
  costs.processors_per_node = s.crowded() ? s.processors : 0;
  return costs;
}

// The constants that are looked for, as numbers and back: of a kind of link, and with that inside a node the rank's.
std::vector<double> numbers(const topo::Costs& c, size_t kind) {
  const auto& link = c.link[kind];
  std::vector<double> out{link.alpha, link.beta, link.overhead};
  if (kind == topo::inside) out.insert(out.end(), {c.rank.gamma, c.rank.copy, c.rank.step});
  return out;
}
topo::Costs costs(topo::Costs c, size_t kind, const std::vector<double>& n) {
  auto& link = c.link[kind];
  link.alpha = n[0], link.beta = n[1], link.overhead = n[2];
  if (kind == topo::inside) c.rank = {n[3], n[4], n[5]};
  return c;
}

/// The samples of one size: candidates for the same call.
struct Size {
  std::vector<size_t> samples;
  double best_us = 0;
};
std::vector<Size> by_size(std::span<const Sample> samples) {
  std::map<decltype(samples[0].call()), Size> sizes;
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& s = samples[i];
    Size& size = sizes[s.call()];
    size.best_us = size.samples.empty() ? s.median_us() : std::min(size.best_us, s.median_us());
    size.samples.push_back(i);
  }
  std::vector<Size> all;
  all.reserve(sizes.size());
  for (auto& [key, size] : sizes) all.push_back(std::move(size));
  return all;
}

Result<topo::Price> price_of(const Sample& s, const topo::Costs& costs, topo::Profiles& profiles) {
  const Result<topo::Profile>& profile = profiles.of(s.family, shape_of(s), placement_of(s));
  if (!profile) return profile.error();
  return topo::price(*profile, with_processors(costs, s), static_cast<double>(s.block_bytes()), usual(s));
}

std::string host_machine_of(std::string_view transport, bool crowded) {
  return fmt::format("host{}{}{}", transport == "shm" ? "" : "_", transport == "shm" ? "" : transport, crowded ? "_crowded" : "");
}

}  // namespace

std::string machine_of(const Sample& s) { return host_machine_of(s.transport, s.crowded()); }

std::string network_machine_of(const Sample& s) { return s.network == "verbs" ? host_machine_of("verbs", s.crowded()) : machine_of(s); }

Result<topo::Costs> costs_of(const Sample& s, const topo::Constants& constants) {
  topo::Costs hosts = GYRE_TRY(constants.machine(machine_of(s)));
  return topo::joined(std::move(hosts), GYRE_TRY(constants.machine(network_machine_of(s))));
}

topo::Query query_of(const Sample& s, const topo::Costs& costs) {
  topo::Query query;
  query.collective = s.collective;
  query.block_bytes = static_cast<double>(s.block_bytes());
  query.element_bytes = sizeof(float);
  query.ranks = s.ranks;
  query.placement = placement_of(s);
  query.channels = 2;
  query.shape_channels = 1;  // as the engine has it, and as samples are taken
  query.costs = with_processors(costs, s);
  query.slots = s.transport != "tcp";
  query.cutting = usual(s);
  return query;
}

Result<double> priced_us(const Sample& s, const topo::Costs& costs, topo::Profiles& profiles) {
  return GYRE_TRY(price_of(s, costs, profiles)).seconds * 1e6;
}

Result<double> simulated_us(const Sample& s, const topo::Costs& costs) {
  const schedule::Schedule schedule = schedule::fuse(GYRE_TRY(topo::make(s.family, shape_of(s))));
  topo::Graph graph = topo::clusters(s.nodes, s.ranks_per_node(), costs.link[topo::inside], costs.link[topo::between], costs.rank);
  graph.nics_per_node = costs.nics_per_node;
  graph.processors_per_node = with_processors(costs, s).processors_per_node;
  const schedule::Network network = GYRE_TRY(topo::network(graph));
  const size_t elements = (s.block_bytes() / sizeof(float) + schedule.chunks - 1) / schedule.chunks;
  const schedule::Cut cut = schedule::cut(elements, sizeof(float), schedule.longest_message(), usual(s));
  schedule::Trial trial;
  trial.block_bytes = static_cast<double>(s.block_bytes());
  trial.conditions = {usual(s).credits, cut.slices, s.transport == "shm" ? schedule::Mode::buffered : schedule::Mode::posted, false};
  trial.rounds = cut.rounds;
  return GYRE_TRY(schedule::simulate(schedule, network, trial)).finish * 1e6;
}

double median_error(std::span<const double> predicted_us, std::span<const Sample> samples) {
  std::vector<double> errors;
  for (size_t i = 0; i < samples.size(); ++i) errors.push_back(std::abs(predicted_us[i] / samples[i].median_us() - 1));
  std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2), errors.end());
  return errors[errors.size() / 2];
}

Result<topo::Costs> fit(std::span<const Sample> samples, const topo::Costs& start) {
  topo::Profiles profiles;
  for (const Sample& s : samples) GYRE_TRY(priced_us(s, start, profiles));
  std::vector<double> measured;
  for (const Sample& s : samples) measured.push_back(s.median_us());
  const std::vector<Size> sizes = by_size(samples);
  const size_t kind = !samples.empty() && samples.front().nodes > 1 ? topo::between : topo::inside;
  const auto error = [&](const std::vector<double>& at) {
    const topo::Costs tried = costs(start, kind, at);
    double sum = 0;
    for (const Size& size : sizes) {
      double least = 0;
      double taken = 0;  // measured, of what would be chosen
      for (const size_t i : size.samples) {
        const topo::Price price = *price_of(samples[i], tried, profiles);
        sum += size.best_us / measured[i] * std::abs(std::log(price.seconds * 1e6 / measured[i]));
        const double weight = topo::weighed(query_of(samples[i], tried), price);
        if (taken == 0 || weight < least * (1 - ties)) {
          least = weight;
          taken = measured[i];
        }
      }
      const double regret = std::log(taken / size.best_us);
      sum += static_cast<double>(size.samples.size()) * regret * (1 + 5 * regret);  // one bad choice is worse than several near ones
    }
    return sum;
  };
  // Many valleys: it is begun from many places around the start, the same ones every time.
  std::mt19937_64 random(1);
  std::vector<double> best = search_least(numbers(start, kind), error);
  for (int i = 0; i < starts; ++i) {
    std::vector<double> at = numbers(start, kind);
    for (double& number : at) number = std::max(number, least_number) * std::exp2(static_cast<double>(random() % 13) - 6);
    at = search_least(at, error);
    if (error(at) < error(best)) best = at;
  }
  return costs(start, kind, best);
}

}  // namespace gyre::perf
