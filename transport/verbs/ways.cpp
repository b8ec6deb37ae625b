#include <algorithm>
#include <functional>
#include <utility>

#include "transport/verbs.h"
#include "transport/verbs/wire.h"

namespace gyre::transport {

void VerbsWay::take(const Config& config) {
  silence = std::chrono::seconds(*config.peer_timeout);
  confirm = *config.ib_confirm != 0;
  fallback_tcp = *config.fallback == "tcp";
  pinned_bytes = *config.pinned_bytes;
}

VerbsWay verbs_way(std::span<const NetDevice> devices, std::string_view own) {
  VerbsWay way;
  for (const auto& device : devices) {
    if (device.name == own) way.first = static_cast<uint32_t>(way.ports.size());
    auto [name, port] = split_port(device.name);
    way.ports.push_back({std::move(name), static_cast<uint8_t>(port)});
  }
  if (!devices.empty()) way.address = devices.front().address;
  return way;
}

std::vector<NetDevice> narrowed(std::vector<NetDevice> devices, std::span<const std::string> ports) {
  const auto named = [&](const NetDevice& device) { return std::ranges::find(ports, device.name) != ports.end(); };
  if (std::ranges::any_of(devices, named)) std::erase_if(devices, std::not_fn(named));
  std::ranges::sort(devices, {}, [](const NetDevice& d) { return std::pair(d.name.size(), d.name); });
  if (devices.size() > verbs::max_rails) devices.resize(verbs::max_rails);
  return devices;
}

Result<VerbsWay> every_verbs_port(const NetFilter& filter, std::span<const std::string> ports) {
  return verbs_way(narrowed(GYRE_TRY(find_net_devices(filter, NetUse::verbs)), ports), ports.empty() ? "" : ports.front());
}

}  // namespace gyre::transport
