#include "perf/sample_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/facts.h"
#include "engine/network.h"
#include "perf/fit.h"
#include "topo/algorithms.h"
#include "transport/bootstrap_text.h"

namespace gyre::perf {
namespace {

using engine::Facts;

Result<int> nodes_of(const std::vector<Facts>& facts) {
  std::vector<std::string> hosts(facts.size());
  std::ranges::transform(facts, hosts.begin(), &Facts::host);
  const auto on_hosts = engine::ranks_on_hosts(hosts);
  std::vector<size_t> sizes;
  for (const auto& ranks : on_hosts) {
    sizes.push_back(ranks.size());
    if (static_cast<size_t>(ranks.back() - ranks.front()) < ranks.size()) continue;
    return Error{Code::invalid_argument,
                 fmt::format("{} are on one host, and samples are of ranks that follow each other on each (mpirun --map-by slot, srun "
                             "--distribution=block)",
                             transport::bootstrap::ranks_text(ranks))};
  }
  if (engine::are_alike(on_hosts)) return static_cast<int>(on_hosts.size());
  return Error{Code::invalid_argument,
               fmt::format("hosts have {} ranks, and samples are of hosts with equally many", fmt::join(sizes, " and "))};
}

/// What joins ranks of the same node, and of different ones.
struct LinkKinds {
  std::set<std::string> inside, between;
};
Result<LinkKinds> link_kinds(engine::Communicator& communicator, const std::vector<Facts>& facts) {
  LinkKinds kinds;
  const auto rows = GYRE_TRY(communicator.all_gather(nlohmann::json(communicator.transports()).dump()));
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    const auto by_peer = nlohmann::json::parse(rows[rank]).get<std::vector<std::string>>();
    for (size_t peer = 0; peer < rank; ++peer) {
      auto& found = facts[rank].host == facts[peer].host ? kinds.inside : kinds.between;
      found.insert(by_peer[peer].empty() ? "nothing" : by_peer[peer]);
    }
  }
  return kinds;
}

Error joined_otherwise(std::string_view ranks, const std::set<std::string>& kinds) {
  return {Code::invalid_argument,
          fmt::format("{} are joined by {}, which samples don't tell apart; --transport names one", ranks, fmt::join(kinds, " and "))};
}

std::vector<int> extents(const topo::Lines& lines) {
  std::vector<int> all;
  for (const topo::Dimension& dimension : lines.value_or(topo::Lines::value_type())) all.push_back(dimension.extent);
  return all;
}

}  // namespace

Result<Sample> sample_of_job(engine::Communicator& communicator, const Config& config) {
  const auto facts = GYRE_TRY(engine::exchange_facts(communicator.bootstrap(), config, ""));
  const LinkKinds kinds = GYRE_TRY(link_kinds(communicator, facts));
  const std::string& asked = *config.transport;
  Sample out;
  out.ranks = communicator.size();
  out.nodes = GYRE_TRY(nodes_of(facts));
  out.transport = engine::all_over_tcp(config, facts) ? "tcp" : asked == "auto" ? "shm" : asked;  // by which the engine has its costs
  out.processors = out.ranks_per_node();
  for (Rank rank = 0; rank < out.ranks; ++rank) out.processors = std::min(out.processors, engine::host_load(facts, rank).processors);
  if (!kinds.inside.empty() && kinds.inside != std::set{out.transport}) return joined_otherwise("ranks of a host", kinds.inside);
  if (out.nodes == 1) return out;
  out.network = *kinds.between.begin();
  if (kinds.between.size() > 1 || out.network == "nothing") return joined_otherwise("ranks of different hosts", kinds.between);
  return out;
}

Result<std::vector<Sample>> candidates(const Sample& call) {
  const topo::Constants constants = GYRE_TRY(topo::default_constants());
  topo::Query query = query_of(call, GYRE_TRY(costs_of(call, constants)));
  query.plays = false;
  topo::Profiles profiles;
  std::vector<Sample> all;
  for (const topo::Candidate& candidate : topo::choose(query, profiles).candidates) {
    if (!candidate.refused.empty()) break;  // those that follow are, too
    all.push_back(call);
    all.back().family = candidate.family;
    all.back().grid = candidate.shape.grid;
  }
  return all;
}

// Where none is named the engine has a grid of hosts.
engine::Preference preference(const Sample& s) {
  const topo::Family& family = *topo::family_named(s.family);
  if (family.grid == topo::GridUse::nodes) return {s.family, {}};
  const bool has_own = s.grid.empty() && family.grid == topo::GridUse::lines && s.nodes > 1;
  return {s.family, has_own ? extents(family.lines({s.collective, s.ranks, 1, 0, {}})) : s.grid};
}

}  // namespace gyre::perf
