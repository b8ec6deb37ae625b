#include "topo/gpu_rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "topo/host_order.h"
#include "topo/job_channels.h"

namespace gyre::topo {
namespace {

/// A host's GPUs that have ranks, in the order of their names, which follows from nothing but the machine.
struct HostGpus {
  std::map<std::string_view, std::vector<Rank>> ranks;
  std::vector<const GpuRow*> rows;

  /// Which one it is; -1: it has no ranks.
  int number(std::string_view gpu) const {
    const auto found = ranks.find(gpu);
    return found == ranks.end() ? -1 : static_cast<int>(std::distance(ranks.begin(), found));
  }
};

// In the order of their first ranks.
std::vector<HostGpus> hosts_of(std::span<const GpuRank> all) {
  std::vector<HostGpus> hosts;
  std::unordered_map<std::string_view, size_t> known;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const auto [place, first] = known.emplace(all[rank].host, hosts.size());
    if (first) hosts.emplace_back();
    HostGpus& host = hosts[place->second];
    host.ranks[all[rank].gpu.gpu].push_back(static_cast<Rank>(rank));
    host.rows.push_back(&all[rank].gpu);
  }
  return hosts;
}

using ByName = std::map<std::pair<size_t, std::string_view>, std::set<int>>;  // by length and name: mlx5_2 before mlx5_10

ByName rails_near(const HostGpus& host) {
  ByName rails;
  for (const GpuRow* row : host.rows) {
    for (const std::string& rail : row->rails) rails[{rail.size(), rail}].insert(host.number(row->gpu));
  }
  return rails;
}

// Ports that all hosts have. They are everybody's first rails, so that channels go from a port to the one of its name, whatever else there
// is on a host, or is down there: networks are often built so that others are further.
std::set<std::string_view> rails_everywhere(std::span<const HostGpus> hosts) {
  std::map<std::string_view, size_t> times;
  for (const HostGpus& host : hosts) {
    for (const auto& [name, near] : rails_near(host)) ++times[name.second];
  }
  std::set<std::string_view> all;
  for (const auto& [name, count] : times) {
    if (count == hosts.size()) all.insert(name);
  }
  return all;
}

// Of two GPUs either may be the one that knows, in containers that show each other less.
NodeLinks links_of(const HostGpus& host, const std::set<std::string_view>& everywhere) {
  NodeLinks links;
  links.gpus = static_cast<int>(host.ranks.size());
  const size_t gpus = host.ranks.size();
  links.switched.assign(gpus, 0);
  links.direct.assign(gpus * gpus, 0);
  links.distance.assign(gpus * gpus, Distance::system);
  for (const GpuRow* row : host.rows) {
    const int own = host.number(row->gpu);
    int& switched = links.switched[static_cast<size_t>(own)];
    switched = std::max(switched, row->switched);
    links.distance[links.at(own, own)] = Distance::same;
    for (const GpuRow::Other& other : row->others) {
      const int to = host.number(other.gpu);
      if (to < 0 || to == own) continue;
      for (const size_t at : {links.at(own, to), links.at(to, own)}) {
        links.distance[at] = std::min(links.distance[at], other.distance);
        links.direct[at] = std::max(links.direct[at], other.direct);
      }
    }
  }
  const ByName rails = rails_near(host);
  for (const bool first : {true, false}) {
    for (const auto& [name, near] : rails) {
      if (everywhere.contains(name.second) == first)
        links.rails.push_back({static_cast<int>(links.rails.size()), 0, {near.begin(), near.end()}});
    }
  }
  return links;
}

// Hosts of which some ranks do not reach each other, by number.
schedule::RankPairs apart(const std::vector<HostGpus>& hosts, const schedule::RankPairs& missing) {
  std::unordered_map<Rank, Rank> host_of;
  for (size_t host = 0; host < hosts.size(); ++host) {
    for (const auto& [name, ranks] : hosts[host].ranks) {
      for (const Rank rank : ranks) host_of[rank] = static_cast<Rank>(host);
    }
  }
  std::set<std::pair<Rank, Rank>> pairs;
  for (const auto& [a, b] : missing) {
    if (host_of[a] != host_of[b]) pairs.insert(std::minmax(host_of[a], host_of[b]));
  }
  return {pairs.begin(), pairs.end()};
}

// GPUs that can't follow each other: an order goes on from the last of the ranks on a GPU to the first of the next one's.
std::vector<LinkOverride> not_joined(const std::vector<std::vector<Rank>>& sharing, const schedule::RankPairs& missing) {
  std::unordered_map<Rank, Rank> first_of, last_of;
  for (size_t gpu = 0; gpu < sharing.size(); ++gpu) {
    first_of[sharing[gpu].front()] = static_cast<Rank>(gpu);
    last_of[sharing[gpu].back()] = static_cast<Rank>(gpu);
  }
  std::vector<LinkOverride> out;
  const auto add = [&](Rank from, Rank to) {
    const auto last = last_of.find(from), first = first_of.find(to);
    const bool hop = last != last_of.end() && first != first_of.end() && last->second != first->second;
    if (hop) out.push_back({last->second, first->second, 1, true});
  };
  for (const auto& [a, b] : missing) add(a, b), add(b, a);
  return out;
}

}  // namespace

std::vector<std::string> rails_near(std::span<const GpuRank> all) {
  std::set<std::pair<size_t, std::string>> rails;
  for (const GpuRank& rank : all) {
    for (const std::string& rail : rank.gpu.rails) rails.emplace(rail.size(), rail);
  }
  std::vector<std::string> out;
  out.reserve(rails.size());
  for (const auto& [length, name] : rails) out.push_back(name);
  return out;
}

std::vector<std::string> rails_from(std::span<const GpuRank> all, Rank rank) {
  std::vector<std::string> out = rails_near(all);
  if (all.empty() || all[static_cast<size_t>(rank)].gpu.rails.empty()) return out;
  const auto own = std::ranges::find(out, all[static_cast<size_t>(rank)].gpu.rails.front());
  std::rotate(out.begin(), own, own + 1);
  return out;
}

Result<GpuRings> gpu_rings(std::span<const GpuRank> all, const schedule::RankPairs& missing) {
  std::vector<JobNode> nodes;
  std::vector<std::vector<Rank>> sharing;  // [GPU of the job]
  const std::vector<HostGpus> hosts = hosts_of(all);
  const std::set<std::string_view> everywhere = rails_everywhere(hosts);
  for (const int number : host_order(static_cast<int>(hosts.size()), apart(hosts, missing))) {
    const HostGpus& host = hosts[static_cast<size_t>(number)];
    nodes.push_back({links_of(host, everywhere), {}});
    for (const auto& [name, ranks] : host.ranks) {
      nodes.back().ranks.push_back(static_cast<Rank>(sharing.size()));
      sharing.push_back(ranks);
    }
  }
  const std::vector<JobChannel> channels = GYRE_TRY(job_channels(nodes, not_joined(sharing, missing)));
  GpuRings out;
  std::string text = fmt::format("{:016x}", digest(channels));
  const auto ranks_of = [&](const schedule::RankOrder& gpus) {
    schedule::RankOrder order;
    for (const Rank gpu : gpus)
      order.insert(order.end(), sharing[static_cast<size_t>(gpu)].begin(), sharing[static_cast<size_t>(gpu)].end());
    return order;
  };
  for (const JobChannel& channel : channels) {
    out.orders.rings.push_back(ranks_of(channel.ring));
    out.orders.chains.push_back(ranks_of(channel.chain));
    text += fmt::format("\n{}", fmt::join(out.orders.rings.back(), " "));
  }
  out.digest = mix(fnv1a(text));
  return out;
}

}  // namespace gyre::topo
