#include "topo/node_links.h"

#include <algorithm>
#include <map>
#include <utility>

namespace gyre::topo {
namespace {

std::vector<Rail> rails_of(const Topology& topology) {
  std::map<std::pair<int, int>, std::vector<int>> near;
  const std::vector<std::vector<Way>> ways = ways_out(topology);
  for (size_t gpu = 0; gpu < ways.size(); ++gpu) {
    if (!ways[gpu].empty()) near[{ways[gpu][0].nic, ways[gpu][0].port}].push_back(static_cast<int>(gpu));
  }
  for (size_t gpu = 0; gpu < ways.size(); ++gpu) {
    for (const Way& way : ways[gpu]) {
      const Way& best = ways[gpu][0];
      const Port &port = topology.port(way.nic, way.port), &of_best = topology.port(best.nic, best.port);
      const bool as_wide = way.path.bytes_per_s >= best.path.bytes_per_s || way.path.bytes_per_s * 8e-9 >= port.gbit_per_s;
      const bool as_fast = as_wide && port.gbit_per_s >= of_best.gbit_per_s;
      const bool as_good = as_fast && way.path.distance == best.path.distance && port.rdma == of_best.rdma;
      if (as_good && !near.contains({way.nic, way.port})) near[{way.nic, way.port}].push_back(static_cast<int>(gpu));
    }
  }
  std::vector<Rail> rails;
  rails.reserve(near.size());
  for (auto& [place, gpus] : near) rails.push_back({place.first, place.second, std::move(gpus)});
  return rails;
}

}  // namespace

NodeLinks node_links(const Topology& topology) {
  const std::vector<int> gpus = topology.all<Gpu>();
  NodeLinks out;
  out.gpus = static_cast<int>(gpus.size());
  for (const int from : gpus) {
    const bool alone = gpus.size() == 1;
    out.switched.push_back(alone ? 0 : switched_nvlinks(topology, from));
    for (const int to : gpus) {
      out.distance.push_back(path(topology, from, to).distance);
      out.direct.push_back(from == to ? 0 : direct_nvlinks(topology, from, to));
    }
  }
  out.rails = rails_of(topology);
  return out;
}

}  // namespace gyre::topo
