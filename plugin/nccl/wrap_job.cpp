#include "plugin/nccl/wrap_job.h"

#include "base/log.h"
#include "engine/facts.h"
#include "plugin/nccl/wrap_real.h"

namespace gyre::plugin::nccl::wrap {

// NCCL tells its tuner how many nodes there are, and not whether they are alike: what gyre runs must be what was measured.
Result<Rules> rules_among(transport::Bootstrap& ranks) {
  if (offer().profile.empty()) return offer().by_options;
  const auto on_hosts = engine::ranks_on_hosts(GYRE_TRY(ranks.all_gather(engine::own_host(config()))));
  const auto nodes = static_cast<int>(on_hosts.size());
  const bool alike = engine::are_alike(on_hosts);
  Rules own = offer().in_job(ranks.size(), alike ? nodes : 0);
  if (!own.any())
    log::info("rank {} of {}: NCCL runs all calls of this communicator: the profile gives gyre none on {} node{}{}", ranks.rank(),
              ranks.size(), nodes, nodes == 1 ? "" : "s", alike ? "" : " with different numbers of ranks");
  return own;
}

}  // namespace gyre::plugin::nccl::wrap
