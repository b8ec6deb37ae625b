#include "topo/gpu_rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
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

// Of two GPUs either may be the one that knows, in containers that show each other less.
NodeLinks links_of(const HostGpus& host) {
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
  for (const auto& [name, near] : rails_near(host))
    links.rails.push_back({static_cast<int>(links.rails.size()), 0, {near.begin(), near.end()}});
  return links;
}

}  // namespace

Result<GpuRings> gpu_rings(std::span<const GpuRank> all) {
  std::vector<JobNode> nodes;
  std::vector<std::vector<Rank>> sharing;  // [GPU of the job]
  std::set<std::pair<size_t, std::string>> rails;
  for (const HostGpus& host : hosts_of(all)) {
    nodes.push_back({links_of(host), {}});
    for (const auto& [name, near] : rails_near(host)) rails.emplace(name.first, name.second);
    for (const auto& [name, ranks] : host.ranks) {
      nodes.back().ranks.push_back(static_cast<Rank>(sharing.size()));
      sharing.push_back(ranks);
    }
  }
  const std::vector<JobChannel> channels = GYRE_TRY(job_channels(nodes));
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
  for (const auto& [length, name] : rails) out.rails.push_back(name);
  return out;
}

}  // namespace gyre::topo
