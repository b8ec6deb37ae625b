#include "topo/discover.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <tuple>

#include "base/log.h"
#include "base/net_sysfs.h"
#include "base/sysfs.h"
#include "base/text.h"
#include "topo/pci_sysfs.h"

namespace gyre::topo {
namespace fs = std::filesystem;

namespace {

// A GPU or NIC that was found, before it has its place among the parts.
struct Found {
  std::optional<PciPlace> place;  // empty: a device that is not on PCI
  int numa = 0;
  std::variant<Gpu, Nic> is;
};

constexpr uint64_t unheard_of = 0x10000;  // as a NUMA node's number, and more

// What /proc/cpuinfo says of the first processor; the others are the same.
Numa read_processor(const fs::path& file) {
  Numa numa;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line) && !line.empty();) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - (colon > 0)) + 1);
    const std::string value = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
    const auto number = static_cast<int>(std::min(parse_number(value).value_or(0), unheard_of));
    if (key == "vendor_id") numa.vendor = value, numa.arch = "x86_64";
    if (key == "cpu family") numa.family = number;
    if (key == "model") numa.model = number;
    if (key == "CPU implementer") numa.arch = "arm64";
  }
  return numa;
}

int numa_of(const std::optional<PciPlace>& place, const PciNuma& told) {
  if (!place) return 0;
  // -1, which is no number here, where the machine has one node, or firmware does not know.
  if (const auto node = sysfs::number(place->folders.back() / "numa_node")) return static_cast<int>(std::min(*node, unheard_of));
  const auto known = told.find(place->chain.back());
  return known != told.end() ? known->second : 0;
}

// Adds a port to the NIC that is at its place, or is the first there.
void add_port(std::vector<Found>& nics, std::optional<PciPlace> place, const PciNuma& told, Port port) {
  const auto same = [&](const Found& nic) { return place && nic.place && nic.place->chain == place->chain; };
  const auto known = std::find_if(nics.begin(), nics.end(), same);
  if (known != nics.end()) {
    std::get<Nic>(known->is).ports.push_back(std::move(port));
  } else {
    const int numa = numa_of(place, told);
    nics.push_back({std::move(place), numa, Nic{{std::move(port)}}});
  }
}

// The ports of RDMA devices, and the network interfaces that are not theirs.
std::vector<Found> find_nics(const fs::path& sys, const PciNuma& told) {
  std::vector<Found> nics;
  std::vector<std::string> theirs;
  for (const auto& [name, number] : sysfs::rdma_ports(sys)) {
    const sysfs::RdmaPort facts = sysfs::rdma_port(sys, name, number);
    theirs.insert(theirs.end(), facts.interfaces.begin(), facts.interfaces.end());
    const bool soft = facts.pci_path.empty() && !facts.interfaces.empty();  // made in software over an interface: it is where that is
    const std::string at = soft ? sysfs::interface(sys, facts.interfaces[0]).pci_path : facts.pci_path;
    add_port(nics, at.empty() ? std::nullopt : place_of(at), told,
             {name, number, facts.mbit_per_s / 1000.0, facts.guid, true, facts.active});
  }
  for (const fs::path& folder : sysfs::entries(sys / "class/net")) {
    const std::string name = folder.filename();
    std::error_code error;
    if (!fs::exists(folder / "device", error)) continue;  // loopback, bridges, tunnels
    if (std::find(theirs.begin(), theirs.end(), name) != theirs.end()) continue;
    const sysfs::Interface facts = sysfs::interface(sys, name);
    const std::string state = sysfs::first_line(folder / "operstate");
    const bool up = state == "up" || state == "unknown" || state.empty();  // some drivers do not say
    add_port(nics, facts.pci_path.empty() ? std::nullopt : place_of(facts.pci_path), told,
             {name, 1, facts.mbit_per_s / 1000.0, 0, false, up});
  }
  return nics;
}

std::vector<Found> find_gpus(const fs::path& sys, std::span<const DriverGpu> driver, const PciNuma& numa) {
  std::vector<Found> gpus;
  for (const fs::path& function : sysfs::entries(sys / "bus/pci/devices")) {
    const auto place = place_of(function);
    const auto address = parse_pci_address(function.filename().string());
    if (!place || !address) continue;
    const Pci pci = read_pci(*address, function);
    if (pci.vendor != pci_nvidia || pci.base_class() != pci_display) continue;
    const auto told = std::find_if(driver.begin(), driver.end(), [&](const DriverGpu& gpu) { return gpu.address == *address; });
    Gpu gpu = told != driver.end() ? told->gpu : Gpu{};
    if (driver.empty()) gpu.index = static_cast<int>(gpus.size());
    gpus.push_back({place, numa_of(place, numa), std::move(gpu)});
  }
  return gpus;
}

// The driver may know more than a container, or a machine that hides its PCI devices, shows.
void say_hidden(std::span<const DriverGpu> driver, const std::vector<Found>& gpus) {
  std::vector<std::string> hidden;
  for (const DriverGpu& gpu : driver) {
    const auto here = [&](const Found& found) { return found.place->chain.back() == gpu.address; };
    if (std::ranges::none_of(gpus, here)) hidden.push_back(text(gpu.address));
  }
  if (!hidden.empty())
    log::info("the driver has GPUs that the system does not show, and no map can: {} of {}: {}", hidden.size(), driver.size(),
              fmt::join(hidden, ", "));
}

// Puts what was found below NUMA nodes and switches, in their order.
class MachineTree {
 public:
  MachineTree(const fs::path& root, std::span<const DriverGpu> driver, const PciNuma& told)
      : processor_(read_processor(root / "proc/cpuinfo")) {
    for (const fs::path& node : sysfs::entries(root / "sys/devices/system/node")) {
      const std::string name = node.filename();
      if (!name.starts_with("node")) continue;
      const uint64_t id = parse_number(std::string_view(name).substr(4)).value_or(unheard_of);
      const std::string cpus = sysfs::first_line(node / "cpumap");
      // A node of memory alone is nobody's parent.
      if (id < unheard_of && cpus.find_first_not_of("0,") != std::string::npos) numa(static_cast<int>(id), cpus);
    }
    std::vector<Found> found = find_gpus(root / "sys", driver, told);
    say_hidden(driver, found);
    std::ranges::move(find_nics(root / "sys", told), std::back_inserter(found));
    std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
      const auto place = [](const Found& f) { return std::tuple{f.numa, f.place ? f.place->chain : std::vector<PciAddress>{}}; };
      return place(a) < place(b);
    });
    for (Found& device : found) add(std::move(device));
    if (topology_.parts.empty()) numa(0, "");
  }

  Topology take() { return std::move(topology_); }

 private:
  int push(Part part) {
    topology_.parts.push_back(std::move(part));
    return static_cast<int>(topology_.parts.size()) - 1;
  }
  int numa(int id, const std::string& cpus) {
    const auto [entry, fresh] = numa_.try_emplace(id, 0);
    if (fresh) {
      Numa node = processor_;
      node.id = id;
      node.cpus = cpus;
      entry->second = push({-1, std::nullopt, std::move(node)});
    }
    return entry->second;
  }

  // Of the bridges above a device the root port is its NUMA node's; then ports come in pairs, a switch's upper and lower one, and the
  // upper one's link is the switch's.
  int switches(int parent, const PciPlace& place) {
    for (size_t i = 1; i + 1 < place.chain.size(); i += 2) {
      const auto [entry, fresh] = switch_.try_emplace(place.chain[i], 0);
      if (fresh) entry->second = push({parent, read_pci(place.chain[i], place.folders[i]), Switch{}});
      parent = entry->second;
    }
    return parent;
  }

  void add(Found device) {
    const int node = numa(device.numa, "");
    Part part;
    part.parent = device.place ? switches(node, *device.place) : node;
    if (device.place) part.pci = read_pci(device.place->chain.back(), device.place->folders.back());
    std::visit([&](auto& is) { part.is = std::move(is); }, device.is);
    push(std::move(part));
  }

  Numa processor_;
  Topology topology_;
  std::map<int, int> numa_;           // by id: its part
  std::map<PciAddress, int> switch_;  // by address: its part
};

}  // namespace

Result<Topology> discover(const fs::path& root, std::span<const DriverGpu> driver, const PciNuma& numa) {
  const fs::path nodes = root / "sys/devices/system/node";
  const fs::path devices = root / "sys/bus/pci/devices";
  if (sysfs::entries(nodes).empty() && sysfs::entries(devices).empty()) {
    return Error{Code::invalid_argument,
                 fmt::format("no machine below {}: neither {} nor {} can be read", root.string(), nodes.string(), devices.string())};
  }
  return MachineTree(root, driver, numa).take();
}

}  // namespace gyre::topo
