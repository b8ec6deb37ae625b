#include <utility>

#include "transport/ports.h"
#include "transport/verbs.h"
#include "transport/verbs/wire.h"

namespace gyre::transport {

static_assert(most_ports == verbs::max_rails);

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

Result<VerbsWay> every_verbs_port(const NetFilter& filter, std::span<const std::string> ports) {
  return verbs_way(narrowed(GYRE_TRY(find_net_devices(filter, NetUse::verbs)), ports), ports.empty() ? "" : ports.front());
}

}  // namespace gyre::transport
