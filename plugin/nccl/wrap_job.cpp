#include "plugin/nccl/wrap_job.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/log.h"
#include "engine/facts.h"
#include "plugin/nccl/wrap_real.h"

namespace gyre::plugin::nccl::wrap {

// NCCL tells its tuner how many nodes there are, and not whether they are alike: what gyre runs must be what was measured.
Result<Rules> rules_among(transport::Bootstrap& ranks) {
  if (offer().profile.empty()) return offer().by_options;
  std::map<std::string, int> on_host;
  for (const std::string& host : GYRE_TRY(ranks.all_gather(engine::own_host(config())))) ++on_host[host];
  const auto nodes = static_cast<int>(on_host.size());
  const bool alike = std::ranges::all_of(on_host, [&](const auto& host) { return host.second == on_host.begin()->second; });
  Rules own = offer().in_job(ranks.size(), alike ? nodes : 0);
  if (!own.any())
    log::info("rank {} of {}: NCCL runs all calls of this communicator: the profile gives gyre none on {} node{}{}", ranks.rank(),
              ranks.size(), nodes, nodes == 1 ? "" : "s", alike ? "" : " with different numbers of ranks");
  return own;
}

}  // namespace gyre::plugin::nccl::wrap
