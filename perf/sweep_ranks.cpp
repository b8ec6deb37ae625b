#include "perf/sweep_ranks.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "base/text.h"

namespace gyre::perf {
namespace {

Status compare_splits(engine::Communicator& communicator, const std::optional<Split>& split) {
  const auto all = GYRE_TRY(communicator.all_gather(split ? split->given : "no NCCL_TESTS_SPLIT"));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0])
      return Error{Code::invalid_usage, fmt::format("groups differ: rank {} has {}, rank 0 has {}", rank, all[rank], all[0])};
  }
  return {};
}

}  // namespace

// One communicator after the other through the same door: a rank knocks for the next when it is in, and so is everybody.
Result<SweepRanks> SweepRanks::join(const transport::Rendezvous& given, const Config& config, int communicators,
                                    const std::optional<Split>& split) {
  SweepRanks ranks;
  transport::Rendezvous rendezvous = given;
  for (int i = 0; i < communicators; ++i, ++rendezvous.job) {
    ranks.all_.push_back(GYRE_TRY(engine::Communicator::create(rendezvous, config)));
  }
  GYRE_TRY(compare_splits(*ranks.all_.front(), split));
  if (!split) return ranks;
  ranks.groups_ = groups_of(*split, given.size);
  for (const auto& each : ranks.all_) ranks.split_.push_back(GYRE_TRY(each->split(split->color(given.rank), given.rank)));
  return ranks;
}

void SweepRanks::abort(const std::string& why) const {
  for (const auto& each : all_) each->abort(why);
  for (const auto& each : split_) each->abort(why);
}

Result<std::string> SweepRanks::totals_of_groups(Totals& mine) const {
  if (!split()) return std::string();
  const auto bandwidths = GYRE_TRY(everybody().all_gather(fmt::format("{:.4f}", mine.average_busbw())));
  const auto wrong = GYRE_TRY(everybody().all_gather(std::to_string(mine.wrong)));
  std::string lines;
  uint64_t sum = 0;
  for (const auto& [color, ranks] : groups_) {
    const auto first = static_cast<size_t>(ranks.front());
    lines += fmt::format("group {}: avg bus bandwidth {}, {} wrong\n", color, bandwidths[first], wrong[first]);
    sum += parse_number(wrong[first]).value_or(1);
  }
  mine.wrong = sum;
  return lines;
}

Result<std::string> SweepRanks::peak_memory() const {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto all = GYRE_TRY(everybody().all_gather(std::to_string(usage.ru_maxrss)));
  uint64_t most = 0;
  size_t rank = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const uint64_t kib = parse_number(all[i]).value_or(0);
    if (kib > most) most = kib, rank = i;
  }
  return fmt::format("Peak memory            : {:.1f} MiB, rank {}", static_cast<double>(most) / 1024, rank);
}

Status SweepRanks::leave() const {
  for (const auto& each : all_) GYRE_TRY(each->bootstrap().barrier());
  return {};
}

}  // namespace gyre::perf
