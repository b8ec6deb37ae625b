#include "topo/completed.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace gyre::topo {
namespace {

template <class Value>
void fill(Value& told, const Value& shown) {
  if (told == Value{}) told = shown;
}

void fill(Pci& told, const Pci& shown) {
  fill(told.class_code, shown.class_code);
  fill(told.vendor, shown.vendor);
  fill(told.device, shown.device);
  fill(told.subsystem_vendor, shown.subsystem_vendor);
  fill(told.subsystem_device, shown.subsystem_device);
  if (told.link.bytes_per_s() == 0) told.link = shown.link;
}

void fill(Numa& told, const Numa& shown) {
  fill(told.cpus, shown.cpus);
  fill(told.arch, shown.arch);
  fill(told.vendor, shown.vendor);
  if (told.family == 0) std::tie(told.family, told.model) = std::pair(shown.family, shown.model);
}

void fill(Gpu& told, const Gpu& shown) {
  if (told.index < 0) told.index = shown.index;
  fill(told.compute_capability, shown.compute_capability);
  if (told.nvlinks.empty()) told.nvlinks = shown.nvlinks;
  if (told.c2c_links == 0) std::tie(told.c2c_links, told.c2c_bytes_per_s) = std::pair(shown.c2c_links, shown.c2c_bytes_per_s);
}

class Completing {
 public:
  Completing(Topology told, const Topology& shown) : told_(std::move(told)), shown_(shown) {
    for (size_t part = 0; part < told_.parts.size(); ++part) {
      if (const auto& pci = told_.parts[part].pci) at_.emplace(pci->address, static_cast<int>(part));
    }
    for (const int nic : shown_.all<Nic>()) {
      for (const Port& port : shown_.ports(nic)) ports_.emplace(std::pair(port.name, port.number), port);
    }
    for (const int nic : told_.all<Nic>()) settle(ports_of(nic));
    // Whom the file has keeps its place, so that places are known before others are put beside them.
    for (size_t part = 0; part < shown_.parts.size(); ++part) meet(static_cast<int>(part));
    for (const int gpu : shown_.all<Gpu>()) place_of(gpu);
    for (const int nic : shown_.all<Nic>()) add(nic);
  }
  Topology take() { return std::move(told_); }

 private:
  Part& part(int told) { return told_.parts[static_cast<size_t>(told)]; }
  std::vector<Port>& ports_of(int nic) { return std::get<Nic>(part(nic).is).ports; }

  // What the file says of ports whose names the system knows.
  void settle(std::vector<Port>& ports) {
    for (Port& port : ports) {
      const auto known = ports_.find({port.name, port.number});
      port.up = known != ports_.end() && known->second.up;
      if (known == ports_.end()) continue;
      port.rdma = known->second.rdma;
      port.guid = known->second.guid;
      fill(port.gbit_per_s, known->second.gbit_per_s);
      settled_.insert(known->first);
    }
  }

  void meet(int shown) {
    const Part& theirs = shown_.part(shown);
    if (const Numa* numa = std::get_if<Numa>(&theirs.is)) {
      const std::vector<int> nodes = told_.all<Numa>();
      const auto same = std::ranges::find_if(nodes, [&](int node) { return std::get<Numa>(part(node).is).id == numa->id; });
      if (same == nodes.end()) return;
      fill(std::get<Numa>(part(*same).is), *numa);
      place_.emplace(shown, *same);
    }
    const auto known = theirs.pci ? at_.find(theirs.pci->address) : at_.end();
    if (known == at_.end()) return;
    Part& own = part(known->second);
    place_.emplace(shown, known->second);
    fill(*own.pci, *theirs.pci);
    // A file may give the address alone.
    if (std::holds_alternative<Switch>(own.is) && told_.children(known->second).empty()) own.is = blank(theirs);
    if (Gpu* gpu = std::get_if<Gpu>(&own.is); gpu != nullptr && std::holds_alternative<Gpu>(theirs.is))
      fill(*gpu, std::get<Gpu>(theirs.is));
  }

  // Of the same kind; a NIC without ports.
  static decltype(Part::is) blank(const Part& of) { return std::holds_alternative<Nic>(of.is) ? Nic{} : of.is; }

  // Put where the system has it, if the file does not have it.
  int place_of(int shown) {
    if (shown < 0) return -1;
    if (const auto known = place_.find(shown); known != place_.end()) return known->second;
    const Part& theirs = shown_.part(shown);
    const int parent = place_of(theirs.parent);
    told_.parts.push_back({parent, theirs.pci, blank(theirs)});
    return place_.emplace(shown, static_cast<int>(told_.parts.size()) - 1).first->second;
  }

  void add(int nic) {
    std::vector<Port> rest;
    std::ranges::copy_if(shown_.ports(nic), std::back_inserter(rest), [&](const Port& port) {
      return !settled_.contains({port.name, port.number});
    });
    if (rest.empty()) return;
    Part& own = part(place_of(nic));
    if (!std::holds_alternative<Nic>(own.is)) own.is = Nic{};
    std::vector<Port>& ports = std::get<Nic>(own.is).ports;
    std::erase_if(ports, [&](const Port& port) { return stands_for_ports(own, port); });
    std::ranges::move(rest, std::back_inserter(ports));
  }

  using Name = std::pair<std::string, int>;
  Topology told_;
  const Topology& shown_;
  std::map<PciAddress, int> at_;  // in the file
  std::map<int, int> place_;      // of what the system shows
  std::map<Name, Port> ports_;    // that it shows
  std::set<Name> settled_;        // that the file has, too
};

}  // namespace

Topology completed(Topology told, const Topology& shown) { return Completing(std::move(told), shown).take(); }

}  // namespace gyre::topo
