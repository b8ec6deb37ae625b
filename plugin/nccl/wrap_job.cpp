#include "plugin/nccl/wrap_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/log.h"
#include "engine/facts.h"
#include "plugin/nccl/on_gpu.h"
#include "plugin/nccl/wrap_real.h"

namespace gyre::plugin::nccl::wrap {
namespace {

bool joined_by_nvlinks(const topo::GpuRow& from, const topo::GpuRow& to) {
  if (from.switched > 0 && to.switched > 0) return true;
  return std::ranges::any_of(from.others, [&](const auto& other) { return other.gpu == to.gpu && other.direct > 0; });
}

/// Of ranks on one node: each GPU is joined to each by NVLinks. No: also where a rank does not know where its own is.
Result<bool> on_nvlinks(transport::Bootstrap& ranks, int device) {
  const auto own = where_it_is(device, ranks.rank());
  std::vector<topo::GpuRow> rows;
  for (const std::string& said : GYRE_TRY(ranks.all_gather(own ? topo::text(*own) : ""))) {
    auto row = topo::parse_gpu_row(said);
    if (!row) return false;
    for (const topo::GpuRow& before : rows) {
      if (!joined_by_nvlinks(before, *row)) return false;
    }
    rows.push_back(*std::move(row));
  }
  return true;
}

}  // namespace

// NCCL tells its tuner how many nodes there are, and not whether they are alike: what gyre runs must be what was measured.
Result<Rules> rules_among(transport::Bootstrap& ranks, std::optional<int> gpu) {
  if (offer().profile.empty()) return offer().by_options;
  const auto on_hosts = engine::ranks_on_hosts(GYRE_TRY(ranks.all_gather(engine::own_host(config()))));
  const auto nodes = static_cast<int>(on_hosts.size());
  const bool alike = engine::are_alike(on_hosts);
  Rules own = offer().in_job(ranks.size(), alike ? nodes : 0);
  std::string why = fmt::format("the profile gives gyre none on {} node{}{}", nodes, nodes == 1 ? "" : "s",
                                alike ? "" : " with different numbers of ranks");
  if (own.any()) {
    if (nodes > 1 || !gpu || !GYRE_TRY(on_nvlinks(ranks, *gpu))) return own;
    own = Rules();
    why = "NVLinks join its GPUs, which are on one node";
  }
  log::info("rank {} of {}: NCCL runs all calls of this communicator: {}", ranks.rank(), ranks.size(), why);
  return own;
}

}  // namespace gyre::plugin::nccl::wrap
