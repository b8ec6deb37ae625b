#include "perf/simulated_choice.h"

#include <algorithm>

#include "topo/simulated.h"

namespace gyre::perf {
namespace {

constexpr double most_above = 1.4;
constexpr double most_events = 1 << 25;  // of which the simulator's records take some gigabytes

// As weighed(), of one that is played. Nothing: too large.
Result<std::optional<double>> played(const topo::Query& query, topo::Candidate candidate, topo::Profiles& profiles) {
  const auto& profile = profiles.of(candidate.family, candidate.shape, query.placement);
  if (!profile) return profile.error();
  if (topo::events(query, *profile, query.block_bytes) > most_events) return std::optional<double>();
  candidate.simulated = GYRE_TRY(topo::simulated_seconds(query, candidate.family, candidate.shape, query.block_bytes));
  candidate.measured.reset();
  return std::optional(topo::weighed(query, candidate));
}

}  // namespace

Result<std::optional<SimulatedChoice>> simulated(const topo::Query& query, const topo::Choice& choice, topo::Profiles& profiles) {
  const auto chosen = GYRE_TRY(played(query, *choice.best(), profiles));
  if (!chosen) return std::optional<SimulatedChoice>();
  SimulatedChoice out{*chosen, *chosen, choice.best(), 0, {{choice.best(), *chosen}}};
  std::vector<const topo::Candidate*> others;
  for (const topo::Candidate& candidate : choice.candidates) {
    if (candidate.refused.empty() && &candidate != choice.best()) others.push_back(&candidate);
  }
  const auto priced = [&](const topo::Candidate* candidate) { return topo::weighed(query, candidate->price); };
  std::ranges::sort(others, {}, priced);
  for (const topo::Candidate* candidate : others) {
    out.times.emplace_back(candidate, priced(candidate));
    if (priced(candidate) > most_above * out.best) continue;
    const auto time = GYRE_TRY(played(query, *candidate, profiles));
    if (!time) ++out.too_large;
    if (time) out.times.back().second = *time;
    if (time && *time < out.best) out.best = *time, out.fastest = candidate;
  }
  return std::optional(std::move(out));
}

}  // namespace gyre::perf
