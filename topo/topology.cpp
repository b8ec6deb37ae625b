#include "topo/topology.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace gyre::topo {
namespace {

// A part and all above it, up to its NUMA node.
std::vector<int> up_from(const Topology& topology, int part) {
  std::vector<int> chain;
  for (; part >= 0; part = topology.part(part).parent) chain.push_back(part);
  return chain;
}

bool is_gpu(const Topology& topology, const PciAddress& address) {
  return std::any_of(topology.parts.begin(), topology.parts.end(),
                     [&](const Part& part) { return std::holds_alternative<Gpu>(part.is) && part.pci && part.pci->address == address; });
}

int links_to(const Gpu& gpu, const Part& to) {
  int found = 0;
  for (const NvLink& link : gpu.nvlinks) {
    if (to.pci && link.target == to.pci->address) found += link.links;
  }
  return found;
}

// What decides between two ways, the best first; of equal ones the order of parts is left to the dealing. RDMA comes before distance since
// it says which network there is: NCCL asks one net plugin for its devices, and gyre's transports list interfaces only where no RDMA port
// is usable. So distance decides among the ports of that network, and a port for management on a GPU's own switch is none of them; it
// stands behind them all, for the day when these are down. A port that is down reaches nobody, and is no way at all.
auto rank_of(const Topology& topology, const Way& way) {
  const Port& port = topology.port(way.nic, way.port);
  return std::tuple{!port.rdma, way.path.distance, -way.path.bytes_per_s, way.path.links, -port.gbit_per_s};
}

std::vector<Way> ways_of(const Topology& topology, int gpu) {
  std::vector<Way> ways;
  for (const int nic : topology.all<Nic>()) {
    const std::vector<Port>& ports = topology.ports(nic);
    for (size_t port = 0; port < ports.size(); ++port) {
      if (ports[port].up) ways.push_back({nic, static_cast<int>(port), path(topology, gpu, nic)});
    }
  }
  std::stable_sort(ways.begin(), ways.end(), [&](const Way& a, const Way& b) { return rank_of(topology, a) < rank_of(topology, b); });
  return ways;
}

}  // namespace

std::vector<int> Topology::children(int parent) const {
  std::vector<int> found;
  for (size_t part = 0; part < parts.size(); ++part) {
    if (parts[part].parent == parent) found.push_back(static_cast<int>(part));
  }
  return found;
}

std::string_view text(Distance distance) {
  constexpr std::array<std::string_view, 5> names{"LOC", "PIX", "PXB", "PHB", "SYS"};
  return names[static_cast<size_t>(distance)];
}

Path path(const Topology& topology, int from, int to) {
  std::vector<int> a = up_from(topology, from);
  std::vector<int> b = up_from(topology, to);
  int meeting = -1;
  while (!a.empty() && !b.empty() && a.back() == b.back()) {
    meeting = a.back();
    a.pop_back();
    b.pop_back();
  }
  Path found;
  found.bytes_per_s = std::numeric_limits<double>::infinity();
  int switches = meeting >= 0 && std::holds_alternative<Switch>(topology.part(meeting).is) ? 1 : 0;
  for (const std::vector<int>* side : {&a, &b}) {
    for (const int part : *side) {
      const Part& passed = topology.part(part);
      if (passed.pci) {
        found.links += 1;
        found.bytes_per_s = std::min(found.bytes_per_s, passed.pci->link.bytes_per_s());
      }
      if (part != from && part != to && std::holds_alternative<Switch>(passed.is)) switches += 1;
    }
  }
  if (found.links == 0) found.bytes_per_s = 0;
  found.distance = from == to                                                ? Distance::same
                   : meeting < 0                                             ? Distance::system
                   : std::holds_alternative<Numa>(topology.part(meeting).is) ? Distance::host_bridge
                   : switches > 1                                            ? Distance::switches
                                                                             : Distance::one_switch;
  return found;
}

int direct_nvlinks(const Topology& topology, int from, int to) {
  // Either may be the one whose driver tells.
  return std::max(links_to(topology.gpu(from), topology.part(to)), links_to(topology.gpu(to), topology.part(from)));
}

int switched_nvlinks(const Topology& topology, int gpu) {
  int found = 0;
  for (const NvLink& link : topology.gpu(gpu).nvlinks) {
    const bool bridge = link.target_class == 0 || link.target_class == pci_nvswitch;
    if (!link.target || (bridge && !is_gpu(topology, *link.target))) found += link.links;
  }
  return found;
}

int nvlinks(const Topology& topology, int from, int to) {
  if (const int direct = direct_nvlinks(topology, from, to); direct > 0) return direct;
  return std::min(switched_nvlinks(topology, from), switched_nvlinks(topology, to));
}

std::vector<std::vector<Way>> ways_out(const Topology& topology) {
  std::vector<std::vector<Way>> all;
  std::vector<std::ptrdiff_t> equal;  // to each GPU: the best ones
  for (const int gpu : topology.all<Gpu>()) {
    const std::vector<Way>& ways = all.emplace_back(ways_of(topology, gpu));
    equal.push_back(std::ranges::count_if(ways, [&](const Way& way) { return rank_of(topology, way) == rank_of(topology, ways[0]); }));
  }
  std::vector<size_t> turns(all.size());
  std::iota(turns.begin(), turns.end(), size_t{0});
  std::ranges::stable_sort(turns, {}, [&](size_t gpu) { return equal[gpu]; });  // who has no choice comes before who can give way
  std::map<std::pair<int, int>, int> taken;
  std::map<std::pair<int, uint64_t>, int> of_chip;
  // A chip may show its ports as devices, which have the same GUID then.
  const auto chip = [&](const Way& way) {
    const uint64_t guid = topology.port(way.nic, way.port).guid;
    return std::pair(guid == 0 ? way.nic : -1, guid);
  };
  for (const size_t gpu : turns) {
    const auto begin = all[gpu].begin(), end = begin + equal[gpu];
    if (begin == end) continue;
    const auto own = std::ranges::min_element(begin, end, {}, [&](const Way& way) {
      return std::pair(taken[{way.nic, way.port}], of_chip[chip(way)]);
    });
    ++taken[{own->nic, own->port}];
    ++of_chip[chip(*own)];
    std::rotate(begin, own, end);
  }
  return all;
}

}  // namespace gyre::topo
