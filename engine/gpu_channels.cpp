#include "engine/gpu_channels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace gyre::engine {
namespace {

constexpr Rank most_shown = 64;

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

Result<std::vector<topo::GpuRank>> gpu_ranks(const std::vector<Facts>& facts) {
  std::vector<topo::GpuRank> ranks;
  const auto known = std::ranges::count_if(facts, [](const Facts& theirs) { return !theirs.gpu.empty(); });
  if (known == 0) return ranks;
  if (known < std::ssize(facts)) {
    const auto without = std::ranges::find_if(facts, [](const Facts& theirs) { return theirs.gpu.empty(); });
    log::info("no channels over GPUs: rank {} does not know where its GPU is", without - facts.begin());
    return ranks;
  }
  for (const Facts& theirs : facts) {
    auto row = topo::parse_gpu_row(theirs.gpu);
    if (!row) return Error{row.error().code, fmt::format("rank {}: {}", ranks.size(), row.error().what)};
    ranks.push_back({theirs.host, *std::move(row)});
  }
  return ranks;
}

Result<topo::ChannelOrders> gpu_channels(transport::Bootstrap& bootstrap, std::span<const topo::GpuRank> ranks,
                                         const schedule::RankPairs& missing) {
  if (ranks.empty()) return topo::ChannelOrders();
  auto found = GYRE_TRY(topo::gpu_rings(ranks, missing));
  GYRE_TRY(same_channels(bootstrap, found.digest));
  say(found.orders.rings, topo::rails_near(ranks));
  return std::move(found.orders);
}

}  // namespace gyre::engine
