#include "topo/simulated.h"

#include <algorithm>
#include <cmath>

#include "schedule/fuse.h"
#include "schedule/simulate.h"
#include "topo/graph.h"

namespace gyre::topo {
namespace {

constexpr int most_ranks_sampled = 1024;
constexpr double most_events_sampled = 1 << 18;
constexpr uint32_t rounds_sampled = 8;

Result<schedule::Network> network_of(const Query& query) {
  const Costs& costs = query.costs;
  Graph graph{{}, costs.link[inside], costs.link[between], costs.rank, costs.nics_per_node, costs.processors_per_node, {}};
  for (Rank rank = 0; rank < query.ranks; ++rank) graph.node_of.push_back(query.placement.node(rank));
  return network(graph);
}

schedule::Cut cut_of(const Query& query, double block_bytes, uint32_t chunks, uint32_t longest_message) {
  const auto chunk = std::max<size_t>(1, static_cast<size_t>(std::ceil(block_bytes / chunks)));  // as it is priced
  return schedule::cut(chunk, 1, longest_message, query.cutting);
}

double events_of_slice(const Query& query, const Profile& profile) {
  int64_t most = 0;
  for (const Tally& work : profile.processor) most = std::max(most, work.steps + work.ends[inside] + work.ends[between]);
  return static_cast<double>(most) * query.ranks;
}

// Of the cut's rounds the first so many.
Result<double> played(const Query& query, const schedule::Schedule& made, double block_bytes, const schedule::Cut& cut, uint32_t rounds) {
  schedule::Trial trial;
  trial.block_bytes = block_bytes * rounds / cut.rounds;
  trial.conditions = {query.cutting.credits, cut.slices, schedule::Mode::buffered, false};
  trial.rounds = rounds;
  const schedule::Network network = GYRE_TRY(network_of(query));
  return GYRE_TRY(schedule::simulate(made, network, trial)).finish;
}

}  // namespace

double events(const Query& query, const Profile& profile, double block_bytes) {
  const schedule::Cut cut = cut_of(query, block_bytes, profile.chunks, profile.longest_message);
  return events_of_slice(query, profile) * static_cast<double>(cut.pieces());
}

Result<double> simulated_seconds(const Query& query, std::string_view family, const Shape& shape, double block_bytes) {
  const schedule::Schedule made = schedule::fuse(GYRE_TRY(make(family, shape)));
  const schedule::Cut cut = cut_of(query, block_bytes, made.chunks, made.longest_message());
  return played(query, made, block_bytes, cut, cut.rounds);
}

std::optional<double> sampled_seconds(const Query& query, const Profile& profile, std::string_view family, const Shape& shape,
                                      double block_bytes) {
  const schedule::Cut cut = cut_of(query, block_bytes, profile.chunks, profile.longest_message);
  const bool all = cut.rounds <= rounds_sampled;
  const uint32_t rounds = all ? cut.rounds : rounds_sampled;
  const uint32_t half = rounds_sampled / 2;
  const double slices = cut.slices * static_cast<double>(all ? rounds : rounds + half);
  if (query.ranks > most_ranks_sampled || events_of_slice(query, profile) * slices > most_events_sampled) return {};
  const auto unfused = make(family, shape);
  if (!unfused) return {};
  const schedule::Schedule made = schedule::fuse(*unfused);
  const auto first = played(query, made, block_bytes, cut, rounds);
  if (!first) return {};
  if (all) return *first;
  const auto before = played(query, made, block_bytes, cut, half);
  if (!before) return {};
  return *first + (cut.rounds - rounds) * ((*first - *before) / half);
}

}  // namespace gyre::topo
