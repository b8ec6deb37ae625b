#include "perf/simulated_choice.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "schedule/fuse.h"
#include "schedule/simulate.h"
#include "topo/graph.h"

namespace gyre::perf {
namespace {

constexpr double most_above = 1.4;
constexpr double most_steps = 1 << 24;  // of which the simulator's records take some gigabytes

Result<schedule::Network> network_of(const topo::Query& query) {
  const int per_node = query.placement.per_node > 0 ? query.placement.per_node : query.ranks;
  topo::Graph graph =
      topo::clusters(query.ranks / per_node, per_node, query.costs.link[topo::inside], query.costs.link[topo::between], query.costs.rank);
  graph.nics_per_node = query.costs.nics_per_node;
  graph.processors_per_node = query.costs.processors_per_node;
  return topo::network(graph);
}

// Of a slice: a family has a step for each of its messages, of which a rank has not many more than are in the longest way.
double steps(const topo::Query& query, const topo::Candidate& candidate, topo::Profiles& profiles) {
  const auto& profile = profiles.of(candidate.family, candidate.shape, query.placement);
  if (!profile) return 0;
  double most = 0;
  for (const topo::Tally& path : profile->path) most = std::max(most, static_cast<double>(path.steps));
  return most * query.ranks;
}

// Nothing: too large.
Result<std::optional<double>> seconds(const topo::Query& query, const topo::Candidate& candidate, const schedule::Network& network,
                                      topo::Profiles& profiles) {
  if (steps(query, candidate, profiles) > most_steps) return std::optional<double>();
  const schedule::Schedule made = schedule::fuse(GYRE_TRY(topo::make(candidate.family, candidate.shape)));
  const auto chunk = std::max<size_t>(1, static_cast<size_t>(std::ceil(query.block_bytes / made.chunks)));  // as it is priced
  const schedule::Cut cut = schedule::cut(chunk, 1, made.longest_message(), query.cutting);
  double all = 0;
  for (const schedule::Program& program : made.programs) all += static_cast<double>(program.steps.size());
  if (all * static_cast<double>(cut.pieces()) > most_steps) return std::optional<double>();
  schedule::Trial trial;
  trial.block_bytes = query.block_bytes;
  trial.conditions = {query.cutting.credits, cut.slices, schedule::Mode::buffered, false};
  trial.rounds = cut.rounds;
  return std::optional(GYRE_TRY(schedule::simulate(made, network, trial)).finish);
}

}  // namespace

Result<std::optional<SimulatedChoice>> simulated(const topo::Query& query, const topo::Choice& choice, topo::Profiles& profiles) {
  const schedule::Network network = GYRE_TRY(network_of(query));
  const auto chosen = GYRE_TRY(seconds(query, *choice.best(), network, profiles));
  if (!chosen) return std::optional<SimulatedChoice>();
  SimulatedChoice out{*chosen, *chosen, choice.best(), 0, {{choice.best(), *chosen}}};
  std::vector<const topo::Candidate*> others;
  for (const topo::Candidate& candidate : choice.candidates) {
    if (candidate.refused.empty() && &candidate != choice.best()) others.push_back(&candidate);
  }
  std::ranges::sort(others, {}, [](const topo::Candidate* c) { return c->price.seconds; });
  for (const topo::Candidate* candidate : others) {
    out.times.emplace_back(candidate, candidate->price.seconds);
    if (candidate->price.seconds > most_above * out.best) continue;
    const auto time = GYRE_TRY(seconds(query, *candidate, network, profiles));
    if (!time) ++out.too_large;
    if (time) out.times.back().second = *time;
    if (time && *time < out.best) out.best = *time, out.fastest = candidate;
  }
  return std::optional(std::move(out));
}

}  // namespace gyre::perf
