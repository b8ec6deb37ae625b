// This machine as choose_net_devices takes it.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "base/log.h"
#include "base/net_sysfs.h"
#include "transport/net_device.h"
#include "transport/ucx_devices.h"
#include "transport/verbs/devices.h"

namespace gyre::transport {
namespace {

/// A boot of a machine, and of it what has interfaces of its own, such as a container.
std::string this_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  return stat("/proc/self/ns/net", &network) == 0 ? boot + "/" + std::to_string(network.st_ino) : boot;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed))
    names.push_back(entry->path().filename().string());
  return names;
}

/// The networks that UCX will find, where it can't be asked: by the names that it gives them.
std::vector<NetMachine::UcxDevice> networks_of(const NetMachine& machine, const ucx::Selection& selection) {
  std::vector<NetMachine::UcxDevice> all;
  const auto add = [&](const std::string& name, std::initializer_list<std::string_view> transports) {
    const bool allowed = std::ranges::any_of(transports, [&](auto transport) { return selection.allows_transport(transport); });
    const bool known = std::ranges::find(all, name, &NetMachine::UcxDevice::name) != all.end();
    if (allowed && !known && selection.allows_device(name)) all.push_back({name});
  };
  const auto chips = machine.sysfs / "class/infiniband";
  for (const auto& chip : names_in(chips))
    for (const auto& port : names_in(chips / chip / "ports"))
      add(fmt::format("{}:{}", chip, port), {"rc_verbs", "rc_mlx5", "dc_mlx5", "ud_verbs", "ud_mlx5"});
  for (const auto& interface : machine.interfaces) add(interface.name, {"tcp"});
  return all;
}

/// What UCX knows of it.
Status add_ucx(NetMachine& machine) {
  auto ucx = GYRE_TRY(ucx::query_devices());
  machine.ucx = ucx.selection ? networks_of(machine, *ucx.selection) : std::move(ucx.networks);
  const bool memory_only = ucx.selection && !ucx.selection->allows_transport("tcp") && ucx.selection->allows_transport("posix");
  if (machine.ucx.empty() && memory_only) ucx.shared_memory = NetMachine::UcxDevice{"memory"};
  machine.shared_memory = std::move(ucx.shared_memory);
  machine.unused_by_ucx = std::move(ucx.unused);
  return {};
}

}  // namespace

#ifndef GYRE_HAVE_UCX
Result<ucx::Devices> ucx::query_devices() { return Error{Code::invalid_usage, "gyre was built without UCX"}; }
#endif
#ifndef GYRE_HAVE_VERBS
std::vector<NetMachine::VerbsPort> verbs::query_ports(const std::filesystem::path& sysfs, const NetFilter&) {
  std::vector<NetMachine::VerbsPort> ports;
  for (const auto& [device, number] : sysfs::rdma_ports(sysfs))
    ports.push_back({fmt::format("{}:{}", device, number), {}, "gyre was built without verbs"});
  return ports;
}
#endif

Result<std::vector<NetDevice>> find_net_devices(const NetFilter& filter, NetUse use) {
  NetMachine machine;
  machine.host = this_host();
  machine.interfaces = GYRE_TRY(read_interfaces());
  machine.verbs_only = use == NetUse::verbs;
  if (use != NetUse::ucx) machine.verbs = verbs::query_ports(machine.sysfs, filter);
  const bool usable = std::ranges::any_of(machine.verbs, [](const auto& port) { return port.obstacle.empty(); });
  if (use == NetUse::verbs) return choose_net_devices(machine, filter);
  if (const auto asked = add_ucx(machine); !asked) {
    if (!usable) return asked.error();
    log::info("without UCX ({}) there are the devices of verbs", asked.error().what);
    machine.verbs_only = true;
  }
  return choose_net_devices(machine, filter);
}

}  // namespace gyre::transport
