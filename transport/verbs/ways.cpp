#include <algorithm>
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

VerbsWay verbs_way(std::span<const NetDevice> devices) {
  VerbsWay way;
  for (const auto& device : devices) {
    auto [name, port] = split_port(device.name);
    way.ports.push_back({std::move(name), static_cast<uint8_t>(port)});
  }
  if (!devices.empty()) way.address = devices.front().address;
  return way;
}

Result<VerbsWay> every_verbs_port(const NetFilter& filter) {
  auto devices = GYRE_TRY(find_net_devices(filter, NetUse::verbs));
  std::ranges::sort(devices, {}, [](const NetDevice& d) { return std::pair(d.name.size(), d.name); });
  if (devices.size() > verbs::max_rails) devices.resize(verbs::max_rails);
  return verbs_way(devices);
}

}  // namespace gyre::transport
