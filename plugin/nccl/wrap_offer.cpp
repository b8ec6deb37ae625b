#include "plugin/nccl/wrap_offer.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "plugin/tuner.h"
#include "plugin/tuner_words.h"

namespace gyre::plugin::nccl::wrap {
namespace {

std::vector<Rules::Sizes>& taken_by(Rules& rules, Collective collective) { return rules.taken[static_cast<size_t>(collective)]; }

bool is_named(std::string_view list, Collective collective) {
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (list.substr(at, end - at) == name(collective)) return true;
    at = end + 1;
  }
  return false;
}

/// NCCL tells its tuner the larger of a rank's input and output: so many blocks of count times element.
uint64_t tuner_blocks(Collective collective, int ranks) {
  const engine::Extent byte = engine::extent({collective, 1, DataType::uint8, ReduceOp::sum, 0, 0}, 0, ranks);
  return std::max(byte.input_bytes, byte.output_bytes);
}

/// Of one rank's count times element, of which the rule has so many blocks.
Rules::Sizes sizes_in(const TunerRule& rule, uint64_t blocks) {
  const size_t least = rule.least_bytes / blocks + (rule.least_bytes % blocks == 0 ? 0 : 1);
  return {least, rule.most_bytes == UINT64_MAX ? SIZE_MAX : rule.most_bytes / blocks};
}

}  // namespace

const TunerFile& file_that_decides(const Config& config) {
  return tuner_file(config.collectives.origin == "default" ? *config.tuner_file : std::string());
}

std::string why_no_profile(const Config& config) {
  const auto& given = file_that_decides(config).rules;
  return given ? "" : given.error().what;
}

Offer Offer::of(const Config& config) {
  Offer offer;
  Rules& own = offer.by_options;
  own.limits.least = *config.min_bytes;
  if (*config.max_bytes != 0) own.limits.most = *config.max_bytes;
  if (!own.limits.any()) return offer;
  for (const Collective collective : all_collectives()) {
    if (is_named(*config.collectives, collective)) taken_by(own, collective) = {own.limits};
  }
  const auto& given = file_that_decides(config).rules;
  if (given && std::ranges::any_of(*given, &TunerRule::gyre_beside)) offer.profile = *given;
  return offer;
}

Rules Offer::in_job(int ranks, int nodes) const {
  Rules own = by_options;
  own.by_profile = !profile.empty();
  for (const TunerRule& rule : rules_beside(profile, ranks, nodes)) {
    const auto collective = *collective_named(tuner_collectives.at(static_cast<size_t>(rule.collective)));
    const Rules::Sizes sizes = sizes_in(rule, tuner_blocks(collective, ranks));
    const Rules::Sizes within{std::max(sizes.least, own.limits.least), std::min(sizes.most, own.limits.most)};
    if (within.any()) taken_by(own, collective).push_back(within);
  }
  return own;
}

}  // namespace gyre::plugin::nccl::wrap
