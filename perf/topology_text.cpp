#include "perf/topology_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace gyre::perf {
namespace {

using topo::Gpu, topo::Nic, topo::Numa, topo::Part, topo::Port, topo::Switch, topo::Topology;

std::string link_text(const topo::PciLink& link) {
  if (link.gt_per_s <= 0 || link.lanes == 0) return "link unknown";
  const std::string narrowed = link.lanes < link.max_lanes ? fmt::format(" of x{}", link.max_lanes) : "";
  return fmt::format("{:.3g} GB/s ({:g} GT/s x{}{})", link.bytes_per_s() / 1e9, link.gt_per_s, link.lanes, narrowed);
}

std::string numbered(const Gpu& gpu) { return gpu.index >= 0 ? fmt::format("GPU {}", gpu.index) : "GPU"; }

// By its address where it has no number or name of its own.
std::string name_by_place(std::string_view kind, const Part& part) {
  return part.pci ? fmt::format("{} {}", kind, text(part.pci->address)) : std::string(kind);
}

std::string line_of(const Part& part) {
  const std::string place = part.pci ? fmt::format(" {}, {}", text(part.pci->address), link_text(part.pci->link)) : "";
  if (const Numa* numa = std::get_if<Numa>(&part.is)) {
    std::string out = fmt::format("NUMA node {}", numa->id);
    for (const std::string& said : {numa->arch, numa->vendor, numa->cpus.empty() ? "" : "processors " + numa->cpus}) {
      if (!said.empty()) out += ", " + said;
    }
    return out;
  }
  if (const Gpu* gpu = std::get_if<Gpu>(&part.is)) {
    std::string out = numbered(*gpu) + place;
    if (gpu->compute_capability > 0) out += fmt::format(", sm_{}", gpu->compute_capability);
    for (const topo::NvLink& link : gpu->nvlinks) {
      const std::string speed = link.bytes_per_s > 0 ? fmt::format(" of {:.3g} GB/s", link.bytes_per_s / 1e9) : "";
      out += fmt::format(", {} NVLinks{} to {}", link.links, speed, link.target ? text(*link.target) : std::string("a switch"));
    }
    if (gpu->c2c_links > 0) out += fmt::format(", {} C2C links of {:.3g} GB/s", gpu->c2c_links, gpu->c2c_bytes_per_s / 1e9);
    return out;
  }
  if (const Nic* nic = std::get_if<Nic>(&part.is)) {
    std::string out = "NIC" + place;
    for (const Port& port : nic->ports) {
      out += fmt::format(", {}{}{}{}", port_name(port), port.gbit_per_s > 0 ? fmt::format(" {:g} Gbit/s", port.gbit_per_s) : "",
                         port.rdma ? " RDMA" : "", port.up ? "" : " down");
    }
    return out;
  }
  return "switch" + place;
}

/// By GPU, the port that is its own way to other machines.
std::map<int, std::string> own_ports(const Topology& topology) {
  std::map<int, std::string> own;
  const auto ways = topo::ways_out(topology);
  const std::vector<int> gpus = topology.all<Gpu>();
  for (size_t gpu = 0; gpu < gpus.size(); ++gpu)
    if (!ways[gpu].empty()) own[gpus[gpu]] = port_name(topology.port(ways[gpu][0].nic, ways[gpu][0].port));
  return own;
}

void add_below(const Topology& topology, const std::map<int, std::string>& own, int parent, const std::string& indent, std::string& out) {
  const std::vector<int> children = topology.children(parent);
  for (const int child : children) {
    const bool last = child == children.back();
    const bool top = parent < 0;
    const std::string way = own.contains(child) ? ", out by " + own.at(child) : "";
    out += fmt::format("{}{}{}{}\n", indent, top ? "" : last ? "└─ " : "├─ ", line_of(topology.part(child)), way);
    add_below(topology, own, child, indent + (top ? "" : last ? "   " : "│  "), out);
  }
}

// A row and column of the table.
struct Head {
  std::string name;
  int part;
};

std::vector<Head> heads(const Topology& topology) {
  std::vector<Head> found;
  for (const int gpu : topology.all<Gpu>()) found.push_back({gpu_name(topology, gpu), gpu});
  for (const int nic : topology.all<Nic>()) {
    const std::vector<Port>& ports = topology.ports(nic);
    for (const Port& port : ports) found.push_back({port_name(port), nic});
    if (ports.empty()) found.push_back({name_by_place("NIC", topology.part(nic)), nic});
  }
  return found;
}

std::string cell(const Topology& topology, const Head& row, const Head& column) {
  if (&row == &column) return "X";
  const bool gpus = std::holds_alternative<Gpu>(topology.part(row.part).is) && std::holds_alternative<Gpu>(topology.part(column.part).is);
  const int links = gpus ? topo::nvlinks(topology, row.part, column.part) : 0;
  return links > 0 ? fmt::format("NV{}", links) : std::string(text(topo::path(topology, row.part, column.part).distance));
}

}  // namespace

std::string gpu_name(const Topology& topology, int part) {
  const Gpu& gpu = topology.gpu(part);
  return gpu.index >= 0 ? numbered(gpu) : name_by_place("GPU", topology.part(part));
}

std::string port_name(const Port& port) { return port.number > 1 ? fmt::format("{}:{}", port.name, port.number) : port.name; }

std::string shortened(const std::string& name) {
  constexpr size_t kept = most_of_name / 2;
  return name.size() <= most_of_name ? name : fmt::format("{}…{}", name.substr(0, kept), name.substr(name.size() - kept));
}
std::string whole_if_shortened(const std::string& name) { return name.size() > most_of_name ? name : ""; }

std::string topology_tree(const Topology& topology) {
  std::string out;
  add_below(topology, own_ports(topology), -1, "", out);
  return out;
}

std::string topology_table(const Topology& topology) {
  const std::vector<int> gpus = topology.all<Gpu>();
  if (gpus.empty()) return "";
  const std::vector<Head> all = heads(topology);
  size_t width = 0;
  for (const Head& head : all) width = std::max(width, head.name.size());
  std::string out = fmt::format("{:{}}", "", width);
  for (const Head& column : all) out += fmt::format("  {:>{}}", column.name, width);
  out += "\n";
  for (const Head& row : all) {
    out += fmt::format("{:{}}", row.name, width);
    for (const Head& column : all) out += fmt::format("  {:>{}}", cell(topology, row, column), width);
    out += "\n";
  }
  out += "\nways to other machines, best first\n";
  const auto ways = topo::ways_out(topology);
  // A file may tell of NICs by their class alone.
  const std::vector<int> nics = topology.all<Nic>();
  const bool nameless = std::any_of(nics.begin(), nics.end(), [&](int nic) { return topology.ports(nic).empty(); });
  for (size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    out += fmt::format("{:{}}", all[gpu].name, width);
    for (const topo::Way& way : ways[gpu]) {
      const Port& port = topology.port(way.nic, way.port);
      out += fmt::format("  {} ({})", port_name(port), text(way.path.distance));
    }
    out += ways[gpu].empty() ? (nameless ? "  unknown: a NIC without a port\n" : "  none\n") : "\n";
  }
  return out;
}

}  // namespace gyre::perf
