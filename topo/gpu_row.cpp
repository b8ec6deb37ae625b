#include "topo/gpu_row.h"

#include <fmt/format.h>

#include <algorithm>

#include "topo/node_links.h"

namespace gyre::topo {
namespace {

std::string name_of(const Topology& topology, int gpu) { return text(topology.part(gpu).pci->address); }

std::string name_of(const Topology& topology, const Rail& rail) {
  const Port& port = topology.port(rail.nic, rail.port);
  return port.rdma ? fmt::format("{}:{}", port.name, port.number) : port.name;
}

}  // namespace

Result<GpuRow> gpu_row(const Topology& topology, const PciAddress& address) {
  const std::vector<int> gpus = topology.all<Gpu>();
  const auto here = [&](int gpu) {
    const auto& pci = topology.part(gpu).pci;
    return pci && pci->address == address;
  };
  const auto found = std::ranges::find_if(gpus, here);
  if (found == gpus.end()) return Error{Code::invalid_argument, fmt::format("this machine shows no GPU at {}", text(address))};
  const auto own = static_cast<int>(found - gpus.begin());
  const NodeLinks links = node_links(topology);
  GpuRow row{text(address), links.switched[static_cast<size_t>(own)], {}, {}};
  for (int other = 0; other < links.gpus; ++other) {
    const int part = gpus[static_cast<size_t>(other)];
    if (other == own || !topology.part(part).pci) continue;
    row.others.push_back({name_of(topology, part), links.distance[links.at(own, other)], links.direct[links.at(own, other)]});
  }
  for (const Rail& rail : links.rails) {
    if (std::ranges::find(rail.near, own) != rail.near.end()) row.rails.push_back(name_of(topology, rail));
  }
  const std::vector<Way> ways = ways_out(topology)[static_cast<size_t>(own)];
  if (ways.empty()) return row;
  const auto first = std::ranges::find(row.rails, name_of(topology, {ways[0].nic, ways[0].port, {}}));
  std::rotate(row.rails.begin(), first, first + 1);
  return row;
}

}  // namespace gyre::topo
