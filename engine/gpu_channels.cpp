#include "engine/gpu_channels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "topo/gpu_rings.h"

namespace gyre::engine {
namespace {

constexpr Rank most_shown = 64;

Result<std::vector<topo::GpuRank>> parsed(const std::vector<Facts>& facts) {
  std::vector<topo::GpuRank> ranks;
  for (const Facts& theirs : facts) {
    auto row = topo::parse_gpu_row(theirs.gpu);
    if (!row) return Error{row.error().code, fmt::format("rank {}: {}", ranks.size(), row.error().what)};
    ranks.push_back({theirs.host, *std::move(row)});
  }
  return ranks;
}

void say(const std::vector<schedule::RankOrder>& rings, const std::vector<std::string>& ports) {
  const auto ranks = static_cast<Rank>(rings[0].size());
  const std::string first = fmt::format("{}", fmt::join(rings[0].begin(), rings[0].begin() + std::min(ranks, most_shown), " "));
  log::info("GPUs: {} channel{}, ranks in the order {}{}; ports near them: {}", rings.size(), rings.size() == 1 ? "" : "s", first,
            ranks > most_shown ? " …" : "", ports.empty() ? "none" : fmt::format("{}", fmt::join(ports, ", ")));
}

}  // namespace

Status same_channels(transport::Bootstrap& bootstrap, uint64_t digest) {
  const auto all = GYRE_TRY(bootstrap.all_gather(fmt::format("{:016x}", digest)));
  const auto other = std::ranges::find_if(all, [&](const std::string& theirs) { return theirs != all[0]; });
  if (other == all.end()) return {};
  return Error{Code::internal, fmt::format("ranks differ: rank {} has channels over GPUs with the digest {}, rank 0 has {}",
                                           other - all.begin(), *other, all[0])};
}

Result<GpuChannels> gpu_channels(transport::Bootstrap& bootstrap, const std::vector<Facts>& facts) {
  const auto known = std::ranges::count_if(facts, [](const Facts& theirs) { return !theirs.gpu.empty(); });
  if (known == 0) return GpuChannels();
  if (known < std::ssize(facts)) {
    const auto without = std::ranges::find_if(facts, [](const Facts& theirs) { return theirs.gpu.empty(); });
    log::info("no channels over GPUs: rank {} does not know where its GPU is", without - facts.begin());
    return GpuChannels();
  }
  const auto ranks = GYRE_TRY(parsed(facts));
  auto found = GYRE_TRY(topo::gpu_rings(ranks));
  GYRE_TRY(same_channels(bootstrap, found.digest));
  GpuChannels out{std::move(found.orders), std::move(found.rails)};
  say(out.orders.rings, out.ports);
  return out;
}

}  // namespace gyre::engine
