#include "transport/net_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "base/net_sysfs.h"
#include "transport/net_filter.h"

namespace gyre::transport {
namespace {

using Interfaces = std::vector<NetMachine::Interface>;

int mbit_of(double bytes_per_s) {
  const double mbit = bytes_per_s * 8e-6;
  return mbit > 0 && mbit < std::numeric_limits<int>::max() ? static_cast<int>(std::lround(mbit)) : 0;
}

Interfaces interfaces_named(const NetMachine& machine, std::span<const std::string> names) {
  Interfaces some;
  for (const auto& name : names)
    std::ranges::copy_if(machine.interfaces, std::back_inserter(some), [&](const auto& i) { return i.name == name; });
  return some;
}

/// Who sees it must be able to mend it: what was wanted, what UCX can use and what the system has.
Error no_interface(const NetMachine& machine, const NetFilter& filter, std::string_view why) {
  std::vector<std::string> there, offered;
  for (const auto& i : machine.interfaces) there.push_back(fmt::format("{} {}{}", i.name, text(i.address), i.running ? "" : " (down)"));
  for (const auto& d : machine.ucx) offered.push_back(d.name);
  const auto rules = interface_rules(filter);
  auto what = fmt::format("{}no network interface {}; there are: {}; UCX can use: {}", why, rules.empty() ? "can be used" : "fits " + rules,
                          there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", ")),
                          offered.empty() ? "none" : fmt::format("{}", fmt::join(offered, ", ")));
  if (!machine.unused_by_ucx.empty()) what += fmt::format("; and not: {}", fmt::join(machine.unused_by_ucx, ", "));
  return {rules.empty() ? Code::system : Code::invalid_usage, what};
}

struct RdmaDevice {
  NetDevice device;
  std::vector<std::string> interfaces;  ///< its own
};

/// Who can use a port: UCX, verbs or both, which list it once. Null: not that one.
struct Users {
  std::string name;
  const NetMachine::UcxDevice* ucx = nullptr;
  const NetMachine::VerbsPort* verbs = nullptr;
};

std::vector<Users> users_of(const NetMachine& machine) {
  std::vector<Users> all;
  for (const auto& ucx : machine.ucx) all.push_back({ucx.name, &ucx, nullptr});
  for (const auto& port : machine.verbs) {
    const auto known = std::ranges::find(all, port.name, &Users::name);
    (known == all.end() ? all.emplace_back(Users{port.name, nullptr, nullptr}) : *known).verbs = &port;
  }
  return all;
}

NetDevice rdma_device(const Users& users, const sysfs::RdmaPort& facts) {
  NetDevice d;
  d.name = users.name;
  d.pci_path = facts.pci_path;
  d.guid = facts.guid;
  d.mbit_per_s = facts.mbit_per_s;
  d.rdma = true;
  if (users.ucx != nullptr) {
    if (d.mbit_per_s == 0) d.mbit_per_s = mbit_of(users.ucx->bytes_per_s);
    d.latency_us = users.ucx->latency_us;
    d.gpu_memory = users.ucx->gpu_memory;
    d.dmabuf = users.ucx->dmabuf;
    d.ucx = true;
  }
  if (users.verbs != nullptr) {
    d.verbs = users.verbs->obstacle.empty();
    d.verbs_words = d.verbs ? users.verbs->address : users.verbs->obstacle;
    if (d.verbs) {
      d.gpu_memory = users.verbs->gpu_memory;
      d.dmabuf = users.verbs->dmabuf;
    }
  }
  return d;
}

/// Those that are up and that NCCL_IB_HCA accepts, in the order that NCCL has: by PCI address, those without one last.
std::vector<RdmaDevice> rdma_devices(const NetMachine& machine, const NetFilter& filter) {
  if (rdma_disabled(filter)) return {};
  const NameList hcas(filter.ib_hca);
  std::vector<RdmaDevice> taken;
  std::vector<std::string> refused;
  for (const auto& users : users_of(machine)) {
    const auto [name, port] = split_port(users.name);
    auto facts = port > 0 ? sysfs::rdma_port(machine.sysfs, name, port) : sysfs::RdmaPort{};
    if (!facts.exists) continue;
    if (!facts.active) {
      log::info("{} is not used: its state is \"{}\"", users.name, facts.state);
      continue;
    }
    if (!hcas.accepts(name, port)) {
      refused.push_back(users.name);
      continue;
    }
    auto device = rdma_device(users, facts);
    if (!device.ucx && !device.verbs) {
      log::info("{} is not used: {}", users.name, device.verbs_words);
      continue;
    }
    device.port = port;
    if (device.guid == 0) device.guid = fnv1a(machine.host + "/" + name);
    if (const auto* entry = hcas.find(name, port)) std::tie(device.rail, device.plane) = std::pair(entry->rail, entry->plane);
    taken.push_back({std::move(device), std::move(facts.interfaces)});
  }
  if (taken.empty() && !refused.empty())
    log::warn("NCCL_IB_HCA={} accepts none of the RDMA devices that are up: {}; network interfaces are used instead", filter.ib_hca,
              fmt::join(refused, ", "));
  std::ranges::sort(taken, {}, [](const RdmaDevice& r) {
    const auto address = r.device.pci_path.substr(r.device.pci_path.rfind('/') + 1);
    return std::tuple(address.empty(), address.size(), address, r.device.name.size(), r.device.name);
  });
  return taken;
}

Error no_rdma(const NetMachine& machine) {
  std::vector<std::string> why;
  for (const auto& port : machine.verbs) {
    const auto [name, number] = split_port(port.name);
    const auto facts = sysfs::rdma_port(machine.sysfs, name, number);
    why.push_back(fmt::format("{}: {}", port.name, facts.active ? port.obstacle : fmt::format("its state is \"{}\"", facts.state)));
  }
  return {Code::system, fmt::format("verbs can use no RDMA port of this machine: {}",
                                    why.empty() ? "there is none in " + (machine.sysfs / "class/infiniband").string()
                                                : fmt::format("{}", fmt::join(why, "; ")))};
}

/// NCCL reckons that what has one PCI address and one guid shares a slot's bandwidth, and tells ports apart by their number alone. But a
/// chip shows its second port as a function of its own with a port 1.
void join_chips(std::vector<NetDevice>& devices) {
  const auto slot = [](const NetDevice& d) { return std::string_view(d.pci_path).substr(0, d.pci_path.rfind('/') + 1); };
  for (size_t i = 0; i < devices.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (devices[i].guid != devices[j].guid) continue;
      devices[i].port = std::max(devices[i].port, devices[j].port + 1);
      if (slot(devices[i]) == slot(devices[j])) devices[i].pci_path = devices[j].pci_path;
    }
  }
}

Result<std::vector<NetDevice>> with_listeners(const std::vector<RdmaDevice>& found, const NetMachine& machine, const NetFilter& filter) {
  const auto any = choose_interfaces(machine.interfaces, filter);
  std::vector<NetDevice> devices;
  for (const auto& [device, names] : found) {
    auto own = choose_interfaces(interfaces_named(machine, names), filter);
    if (own.empty()) own = any;
    if (own.empty()) return no_interface(machine, filter, fmt::format("{} needs an address to be found at, but ", device.name));
    devices.push_back(device);
    devices.back().interface = own.front().name;
    devices.back().address = own.front().address;
  }
  return devices;
}

NetDevice socket_device(const NetMachine& machine, const NetMachine::Interface& chosen) {
  NetDevice d;
  d.name = d.interface = chosen.name;
  d.address = chosen.address;
  d.loopback = chosen.loopback;
  const auto facts = sysfs::interface(machine.sysfs, chosen.name);
  d.pci_path = facts.pci_path;
  d.guid = facts.mac != 0 ? facts.mac : fnv1a(machine.host + "/" + chosen.name);
  d.mbit_per_s = facts.mbit_per_s;  // what UCX says instead of an unknown one is a guess, and lower than NCCL's
  const auto ucx = std::ranges::find(machine.ucx, chosen.name, &NetMachine::UcxDevice::name);
  if (ucx != machine.ucx.end()) d.latency_us = ucx->latency_us;
  d.ucx = true;
  if (machine.shared_memory) d.mbit_per_s = mbit_of(machine.shared_memory->bytes_per_s);
  if (machine.shared_memory) d.latency_us = machine.shared_memory->latency_us;
  return d;
}

Result<std::vector<NetDevice>> socket_devices(const NetMachine& machine, const NetFilter& filter) {
  auto usable = machine.interfaces;
  const auto known = [&](const auto& i) {
    return std::ranges::find(machine.ucx, i.name, &NetMachine::UcxDevice::name) != machine.ucx.end();
  };
  if (!machine.shared_memory) std::erase_if(usable, [&](const auto& i) { return !known(i); });
  auto chosen = choose_interfaces(usable, filter);
  if (chosen.empty()) return no_interface(machine, filter, "");
  // Of an interface only the address is used then, so a second would be the same network once more.
  if (machine.shared_memory) chosen.resize(1);
  std::vector<NetDevice> devices;
  devices.reserve(chosen.size());
  for (const auto& i : chosen) devices.push_back(socket_device(machine, i));
  return devices;
}

std::string environment_text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string text(const SocketAddress& address) {
  std::string host(NI_MAXHOST, '\0');
  const auto* raw = reinterpret_cast<const sockaddr*>(&address.bytes);
  if (getnameinfo(raw, address.length, host.data(), NI_MAXHOST, nullptr, 0, NI_NUMERICHOST) != 0) return "without address";
  host.resize(host.find('\0'));
  return host;
}

std::pair<std::string, int> split_port(const std::string& name) {
  const size_t colon = name.rfind(':');
  if (colon == std::string::npos) return {name, 0};
  int port = 0;
  std::from_chars(name.data() + colon + 1, name.data() + name.size(), port);
  return {name.substr(0, colon), port};
}

NetFilter NetFilter::from_environment() {
  return {environment_text("NCCL_SOCKET_IFNAME"), environment_text("NCCL_SOCKET_FAMILY"), environment_text("NCCL_IB_HCA"),
          environment_text("NCCL_IB_DISABLE")};
}

Result<std::vector<NetDevice>> choose_net_devices(const NetMachine& machine, const NetFilter& filter) {
  warn_of_ignored(filter);
  const auto rdma = rdma_devices(machine, filter);
  if (rdma.empty() && machine.verbs_only) return no_rdma(machine);
  auto devices = rdma.empty() ? GYRE_TRY(socket_devices(machine, filter)) : GYRE_TRY(with_listeners(rdma, machine, filter));
  join_chips(devices);
  return devices;
}

}  // namespace gyre::transport
