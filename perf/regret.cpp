#include "perf/regret.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "perf/fit.h"

namespace gyre::perf {
namespace {

using Here = std::vector<const Sample*>;  // of one size on one machine

const Sample* measured(const Here& here, const topo::Candidate& candidate) {
  for (const Sample* s : here) {
    if (s->family == candidate.family && s->grid == candidate.shape.grid) return s;
  }
  return nullptr;
}

Result<Regret> regret(const Here& here, const topo::Constants& constants, topo::Profiles& profiles) {
  const Sample& any = *here.front();
  const topo::Query query = query_of(any, GYRE_TRY(costs_of(any, constants)));
  const topo::Choice choice = topo::choose(query, profiles);
  const Sample* best = *std::min_element(here.begin(), here.end(), [](auto* a, auto* b) { return a->median_us() < b->median_us(); });
  const topo::Candidate* by_rule = topo::rule_of_thumb(query, choice);
  for (const topo::Candidate* taken : {choice.best(), by_rule}) {
    if (taken == nullptr || measured(here, *taken) == nullptr) {
      return Error{Code::invalid_argument,
                   fmt::format("{} of {} bytes between {} ranks{} over {}: {} would be taken and was not measured", name(any.collective),
                               any.bytes, any.ranks, any.nodes > 1 ? fmt::format(" on {} nodes", any.nodes) : "", any.transport,
                               taken == nullptr ? "nothing" : taken->family)};
    }
  }
  const Sample* chosen = measured(here, *choice.best());
  const Sample* rule = measured(here, *by_rule);
  const double least = best->median_us();
  return Regret{any.collective,
                any.ranks,
                any.nodes,
                any.transport,
                any.bytes,
                best->family,
                chosen->family,
                rule->family,
                least,
                *std::max_element(best->us.begin(), best->us.end()) / least,
                chosen->median_us() / least,
                rule->median_us() / least};
}

}  // namespace

Result<std::vector<Regret>> regrets(std::span<const Sample> samples, const topo::Constants& constants) {
  std::map<decltype(samples[0].call()), Here> groups;
  for (const Sample& s : samples) groups[s.call()].push_back(&s);
  topo::Profiles profiles;
  std::vector<Regret> all;
  all.reserve(groups.size());
  for (const auto& [key, here] : groups) all.push_back(GYRE_TRY(regret(here, constants, profiles)));
  return all;
}

}  // namespace gyre::perf
