#include "plugin/networks.h"

#include <fmt/format.h>

#include <algorithm>

#include "plugin/net.h"
#ifdef GYRE_HAVE_UCX
#include "transport/ucx.h"
#endif
#ifdef GYRE_HAVE_VERBS
#include "transport/verbs.h"
#endif

namespace gyre::plugin {
namespace {

using Devices = std::vector<transport::NetDevice>;

#ifdef GYRE_HAVE_UCX
WayKind kind_of(const transport::UcxWay& way) {
  if (!way.local) return WayKind::network;
  return way.reads_processes ? WayKind::in_place : WayKind::by_copies;
}

bool ucx_is_there() {
  static const bool is = !transport::ucx_devices().empty();
  return is;
}

std::vector<transport::UcxWay> ucx_ways_by(const Devices& members) {
  if (!ucx_is_there()) return {};
  std::vector<std::string> names;
  names.reserve(members.size());
  for (const auto& member : members) names.push_back(member.name);
  return transport::ucx_ways(names);
}

Result<std::unique_ptr<transport::Worker>> open_ucx(const Devices& members, WayKind kind) {
  for (auto way : ucx_ways_by(members)) {
    if (kind_of(way) != kind) continue;
    way.requests = max_requests * max_grouped;
    way.keepalive = false;  // the Control sockets watch
    for (const auto& member : members)
      if (member.gpu_memory && !way.local) way.flushes.push_back(member.name);
    return transport::open_ucx_worker({}, way);
  }
  return Error{Code::internal, "UCX_TLS has changed meanwhile"};
}
#else
struct UcxWay {
  std::string name;
};
WayKind kind_of(const UcxWay&) { return WayKind::network; }
std::vector<UcxWay> ucx_ways_by(const Devices&) { return {}; }
Result<std::unique_ptr<transport::Worker>> open_ucx(const Devices&, WayKind) {
  return Error{Code::invalid_usage, "this gyre was built without UCX"};
}
#endif

bool ucx_takes_cuda() {
#ifdef GYRE_HAVE_UCX
  return transport::ucx_memory().cuda;
#else
  return false;
#endif
}

std::string joined(const Devices& members, std::string_view between, auto words) {
  std::string text;
  for (const auto& member : members) text += fmt::format("{}{}", text.empty() ? "" : between, words(member));
  return text;
}

}  // namespace

Result<Devices> Networks::find_here(transport::NetUse use) {
  return transport::find_net_devices(transport::NetFilter::from_environment(), use);
}

Result<Devices> Networks::devices(const Config& config) {
  config_ = config;
  const std::string& transport = *config.transport;
  if (transport == "loopback")
    return Error{Code::invalid_usage,
                 "GYRE_TRANSPORT=loopback: it joins threads, and the net plugin processes; auto, verbs, ucx or shm can"};
  using enum transport::NetUse;
  auto found = GYRE_TRY(find_(transport == "auto" ? all : transport == "verbs" ? verbs : ucx));
  for (auto& device : found) device.gpu_memory = device.gpu_memory && (device.verbs || ucx_takes_cuda());
  return found;
}

bool Networks::allows(WayKind kind) const {
  const std::string& transport = *config_.transport;
  if (transport == "auto") return true;
  if (kind == WayKind::verbs) return transport == "verbs";
  return transport == "ucx" || (transport == "shm" && is_local(kind));
}

// Where NCCL was told that a device takes CUDA memory, each way must.
std::vector<Way> Networks::ways(const Devices& members) {
  std::vector<Way> all;
  const bool ucx = ucx_takes_cuda() || std::ranges::any_of(members, [](const auto& d) { return !d.gpu_memory; });
  if (ucx && allows(WayKind::by_copies))
    for (const auto& way : ucx_ways_by(members))
      if (is_local(kind_of(way))) all.push_back({kind_of(way), way.name});
  if (allows(WayKind::verbs) && std::ranges::all_of(members, &transport::NetDevice::verbs)) all.push_back(verbs_way(members));
  if (ucx && allows(WayKind::network) && std::ranges::all_of(members, &transport::NetDevice::ucx))
    for (const auto& way : ucx_ways_by(members))
      if (!is_local(kind_of(way))) all.push_back({kind_of(way), way.name, why_not_verbs(members)});
  return all;
}

Way Networks::verbs_way(const Devices& members) const {
  const auto rail = [](const transport::NetDevice& d) {
    return fmt::format("{} ({}{})", d.name, d.mbit_per_s > 0 ? fmt::format("{} Mbit/s, ", d.mbit_per_s) : "", d.verbs_words);
  };
  const bool choice = *config_.transport == "auto" && std::ranges::all_of(members, &transport::NetDevice::ucx);
  return {WayKind::verbs, "verbs on " + joined(members, " + ", [](const auto& d) { return d.name; }),
          fmt::format("{}{}", joined(members, ", ", rail),
                      choice                         ? "; preferred to UCX"
                      : *config_.transport == "auto" ? "; UCX can't use all of them"
                                                     : "; GYRE_TRANSPORT=verbs")};
}

std::string Networks::why_not_verbs(const Devices& members) const {
  if (std::ranges::none_of(members, &transport::NetDevice::rdma)) return {};
  if (*config_.transport != "auto") return fmt::format("not verbs: GYRE_TRANSPORT={}", *config_.transport);
  Devices unusable;
  std::ranges::copy_if(members, std::back_inserter(unusable), [](const auto& d) { return !d.verbs; });
  if (unusable.empty()) return {};  // the peer's doing, and said there
  return "not verbs: " + joined(unusable, ", ", [](const auto& d) {
           return fmt::format("{}: {}", d.name, d.rdma ? d.verbs_words : "it is no RDMA device");
         });
}

Result<std::unique_ptr<transport::Worker>> Networks::open(const Devices& members, WayKind kind) {
  if (kind != WayKind::verbs) return open_ucx(members, kind);
#ifdef GYRE_HAVE_VERBS
  auto way = transport::verbs_way(members);
  way.sysfs = sysfs_;
  way.take(config_);
  return transport::open_verbs_worker({}, way);
#else
  return Error{Code::invalid_usage, "this gyre was built without verbs"};
#endif
}

}  // namespace gyre::plugin
