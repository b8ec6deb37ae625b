// The networks of this machine, by UCX and by verbs, as far as GYRE_TRANSPORT allows them: auto both, where verbs comes first on the
// devices that it can use; ucx and verbs one of them; shm what UCX has inside a host.
#pragma once
#include <functional>

#include "plugin/provider.h"

namespace gyre::plugin {

class Networks final : public Provider {
 public:
  using Find = std::function<Result<std::vector<transport::NetDevice>>(transport::NetUse)>;
  /// Tests invent a machine, with the sysfs that its verbs devices show.
  explicit Networks(Find find = find_here, std::string sysfs = "/sys") : find_(std::move(find)), sysfs_(std::move(sysfs)) {}

  Result<std::vector<transport::NetDevice>> devices(const Config&) override;
  /// Which device, devices() says.
  bool cuda() override { return true; }
  std::vector<Way> ways(const std::vector<transport::NetDevice>& members) override;
  bool needs_calls(WayKind way) override { return !is_local(way); }
  Result<std::unique_ptr<transport::Worker>> open(const std::vector<transport::NetDevice>& members, WayKind) override;

 private:
  static Result<std::vector<transport::NetDevice>> find_here(transport::NetUse);
  bool allows(WayKind) const;
  Way verbs_way(const std::vector<transport::NetDevice>& members) const;
  std::string why_not_verbs(const std::vector<transport::NetDevice>& members) const;

  Find find_;
  std::string sysfs_;
  Config config_;
};

}  // namespace gyre::plugin
