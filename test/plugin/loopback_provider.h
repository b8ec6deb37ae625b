// Invented networks for the net plugin: devices on addresses of this host's loopback network, joined by posted loopback with the faults
// that a test chooses for each way.
#pragma once
#include <algorithm>
#include <mutex>

#include "plugin/provider.h"
#include "test/faulty_transport.h"
#include "test/transport/loopback_address.h"
#include "transport/loopback_posted.h"

namespace gyre::test {

inline transport::NetDevice loopback_device(int index) {
  transport::NetDevice device;
  device.name = "loop" + std::to_string(index);
  device.interface = "lo";
  device.address = loopback_address(static_cast<uint8_t>(index + 1));
  device.guid = static_cast<uint64_t>(index) + 1;
  device.mbit_per_s = 1000 * (index + 1);
  return device;
}

class LoopbackProvider final : public plugin::Provider {
 public:
  explicit LoopbackProvider(int devices = 1) {
    for (int i = 0; i < devices; ++i) list.push_back(loopback_device(i));
  }

  std::vector<transport::NetDevice> list;
  std::optional<Error> no_devices;
  std::vector<plugin::WayKind> has{plugin::WayKind::network};  ///< the best first
  std::array<std::optional<Error>, plugin::way_kinds> cannot_open;
  std::array<Faults, plugin::way_kinds> faults;
  uint32_t seed = 0;  ///< of posted loopback: not 0: completions come late

  Faults& network() { return of(plugin::WayKind::network); }
  Faults& of(plugin::WayKind kind) { return faults[static_cast<size_t>(kind)]; }

  Result<std::vector<transport::NetDevice>> devices(const Config&) override {
    if (no_devices) return *no_devices;
    return list;
  }
  bool cuda() override { return false; }
  std::vector<plugin::Way> ways(const std::vector<transport::NetDevice>&) override {
    std::vector<plugin::Way> all;
    for (const auto kind : has) all.push_back({kind, name(kind)});
    return all;
  }
  Result<std::unique_ptr<transport::Worker>> open(const std::vector<transport::NetDevice>&, plugin::WayKind kind) override {
    if (const auto& why = cannot_open[static_cast<size_t>(kind)]) return *why;
    // So many credits that its endpoints have requests for all parts of all requests of a connection.
    constexpr transport::Slots slots{plugin::max_requests * plugin::max_grouped / 2, 4096};
    return std::unique_ptr<transport::Worker>(
        std::make_unique<FaultyWorker>(GYRE_TRY(transport::open_posted_loopback_worker(slots, seed)), of(kind)));
  }
  static std::string name(plugin::WayKind kind) {
    return kind == plugin::WayKind::in_place ? "in place" : kind == plugin::WayKind::by_copies ? "copies" : "the network";
  }
};

}  // namespace gyre::test
