#include "transport/transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/net_sysfs.h"
#include "transport/loopback.h"
#include "transport/net_filter.h"
#include "transport/open_instead.h"
#include "transport/posted_fifo.h"
#include "transport/shm.h"
#include "transport/tcp.h"
#ifdef GYRE_HAVE_UCX
#include "transport/ucx.h"
#include "transport/ucx_api.h"
#endif
#ifdef GYRE_HAVE_VERBS
#include "transport/verbs.h"
#endif

namespace gyre::transport {
#ifdef GYRE_HAVE_UCX
namespace {

bool speaks_for_ucx() {
  for (const char* name : {"UCX_TLS", "UCX_NET_DEVICES"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  if (tcp_devices().empty()) return true;
  const auto filter = NetFilter::from_environment();
  if (rdma_disabled(filter) || sysfs::rdma_ports("/sys").empty()) return false;
#ifdef GYRE_HAVE_VERBS
  return !every_verbs_port(filter);
#else
  return true;
#endif
}

// Once for the process: what is found later must not make it open UCX beside its threads.
bool asks_ucx(std::string_view only) {
  if (only != "auto") return only == "ucx";
  static const bool speaks = speaks_for_ucx();
  return speaks;
}

bool may_fall_back([[maybe_unused]] const Config& config) {
#ifdef GYRE_HAVE_VERBS
  const bool verbs = *config.transport == "verbs" || *config.transport == "auto";
  return verbs && *config.fallback == "tcp" && !sysfs::rdma_ports("/sys").empty();  // one that is down now may be up later
#else
  return false;
#endif
}

}  // namespace
#endif

#ifdef GYRE_HAVE_VERBS
namespace {

std::vector<Device::Port> verbs_ports() {
  std::vector<Device::Port> ports;
  const auto found = find_net_devices(NetFilter::from_environment(), NetUse::verbs);
  for (const NetDevice& device : found ? *found : std::vector<NetDevice>()) ports.push_back({device.name, device.port, device.mbit_per_s});
  return ports;
}

}  // namespace
#endif

std::vector<Device> devices(std::string_view only) {
  const auto wanted = [&](std::string_view backend) { return only == "auto" || only == backend; };
  std::vector<Device> all;
  if (wanted("shm")) all.push_back({"shm", "shm", false});
#ifdef GYRE_HAVE_VERBS
  if (const auto found = wanted("verbs") ? verbs_ports() : std::vector<Device::Port>(); !found.empty())
    all.push_back({"verbs", "verbs", true, found});
#endif
#ifdef GYRE_HAVE_UCX
  for (const Device& device : asks_ucx(only) ? ucx_devices() : std::vector<Device>()) all.push_back(device);
#endif
  for (const Device& device : wanted("tcp") ? tcp_devices() : std::vector<Device>()) all.push_back(device);
  if (wanted("loopback")) all.push_back({"loopback", "loopback", false});
  return all;
}

std::string why_not(std::string_view backend, [[maybe_unused]] std::string_view only) {
#ifdef GYRE_HAVE_VERBS
  if (backend == "verbs") {
    const auto way = every_verbs_port(NetFilter::from_environment());
    return way ? "verbs can be used" : way.error().what;
  }
#endif
#ifdef GYRE_HAVE_UCX
  if (backend == "ucx") return asks_ucx(only) ? why_no_ucx() : "UCX_TLS and UCX_NET_DEVICES are not set, and tcp is there";
#endif
  if (backend == "tcp") return why_no_tcp();
  return fmt::format("this gyre was built without {}", backend);
}

void open_ucx_before_threads([[maybe_unused]] const Config& config) {
#ifdef GYRE_HAVE_UCX
  if (asks_ucx(*config.transport) || may_fall_back(config)) (void)ucx::load_ucx();
#endif
}

std::string ucx_version() {
#ifdef GYRE_HAVE_UCX
  return ucx::version();
#else
  return "";
#endif
}

size_t most_connection_bytes(const Slots& slots) {
  return std::max({shm_connection_bytes(slots), tcp_connection_bytes(slots), PostedFifo::footprint(slots)});  // loopback is shm's rings
}

size_t most_worker_bytes() { return shm_worker_bytes(); }

namespace {

using Instead = std::map<std::string, OpenWorker, std::less<>>;
Instead& instead() {
  static Instead all;
  return all;
}

}  // namespace

void open_instead(std::string_view backend, OpenWorker open) {
  if (open)
    instead().insert_or_assign(std::string(backend), std::move(open));
  else if (const auto known = instead().find(backend); known != instead().end())
    instead().erase(known);
}

Result<std::unique_ptr<Worker>> open_worker(const Device& device, Slots slots, const Config& config,
                                            [[maybe_unused]] std::span<const std::string> ports) {
  if (const auto other = instead().find(device.backend); other != instead().end()) return other->second(slots);
  if (device.backend == "shm") return open_shm_worker(slots);
  if (device.backend == "loopback") return open_loopback_worker(slots);
  if (device.backend == "tcp") return open_tcp_worker(slots, std::chrono::seconds(*config.peer_timeout));
#ifdef GYRE_HAVE_VERBS
  if (device.backend == "verbs") {
    auto way = GYRE_TRY(every_verbs_port(NetFilter::from_environment(), ports));
    way.take(config);
    return open_verbs_worker(slots, way);
  }
#endif
#ifdef GYRE_HAVE_UCX
  if (device.backend == "ucx") {
    UcxWay way;
    way.wakes = sysfs::rdma_ports("/sys").empty();  // some over RDMA can't (EFA's SRD), and others would be taken
    return open_ucx_worker(slots, way);
  }
#endif
  return Error{Code::invalid_usage, why_not(device.backend, device.backend)};
}

}  // namespace gyre::transport
