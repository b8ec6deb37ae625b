#include "plugin/provider.h"

#include "plugin/net.h"
#ifdef GYRE_HAVE_UCX
#include "transport/ucx.h"
#endif

namespace gyre::plugin {
namespace {

#ifdef GYRE_HAVE_UCX
WayKind kind_of(const transport::UcxWay& way) {
  if (!way.local) return WayKind::network;
  return way.reads_processes ? WayKind::in_place : WayKind::by_copies;
}

std::vector<transport::UcxWay> ucx_ways_by(const std::vector<transport::NetDevice>& members) {
  std::vector<std::string> names;
  names.reserve(members.size());
  for (const auto& member : members) names.push_back(member.name);
  return transport::ucx_ways(names);
}

class UcxProvider final : public Provider {
 public:
  Result<std::vector<transport::NetDevice>> devices() override {
    return transport::find_net_devices(transport::NetFilter::from_environment());
  }
  bool cuda() override { return transport::ucx_memory().cuda; }
  bool keeps_sends(WayKind way) override { return way == WayKind::network; }
  std::vector<Way> ways(const std::vector<transport::NetDevice>& members) override {
    std::vector<Way> all;
    for (const auto& way : ucx_ways_by(members)) all.push_back({kind_of(way), way.name});
    return all;
  }
  Result<std::unique_ptr<transport::Worker>> open(const std::vector<transport::NetDevice>& members, WayKind kind) override {
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
};
#else
class UcxProvider final : public Provider {
 public:
  Result<std::vector<transport::NetDevice>> devices() override { return Error{Code::invalid_usage, "this gyre was built without UCX"}; }
  bool cuda() override { return false; }
  std::vector<Way> ways(const std::vector<transport::NetDevice>&) override { return {}; }
  Result<std::unique_ptr<transport::Worker>> open(const std::vector<transport::NetDevice>&, WayKind) override {
    return Error{Code::invalid_usage, "this gyre was built without UCX"};
  }
};
#endif

}  // namespace

std::unique_ptr<Provider> ucx_provider() { return std::make_unique<UcxProvider>(); }

}  // namespace gyre::plugin
