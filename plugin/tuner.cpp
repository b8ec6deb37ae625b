#include "plugin/tuner.h"

#include <algorithm>
#include <iterator>

namespace gyre::plugin {
namespace {

/// Whether NCCL limits the channels that it is told to those it has: not where it goes by CollNet.
bool limits_channels(const TunerRule& rule, int64_t nodes) {
  if (rule.algorithm == NCCL_ALGO_NVLS) return nodes == 1;
  return rule.algorithm != NCCL_ALGO_COLLNET_DIRECT && rule.algorithm != NCCL_ALGO_COLLNET_CHAIN;
}

bool fits(int64_t wanted, int64_t is) { return wanted == TunerRule::any || wanted == is; }

}  // namespace

Tuner::Tuner(std::span<const TunerRule> rules, int64_t ranks, int64_t nodes) {
  std::copy_if(rules.begin(), rules.end(), std::back_inserter(rules_),
               [&](const TunerRule& rule) { return fits(rule.ranks, ranks) && fits(rule.nodes, nodes); });
  for (TunerRule& rule : rules_)
    if (!limits_channels(rule, nodes)) rule.channels = 0;
}

const TunerRule* Tuner::choose(const TunerCall& call, const CostTable& table) const noexcept {
  for (const TunerRule& rule : rules_)
    if (rule.collective == call.collective && rule.least_bytes <= call.bytes && call.bytes <= rule.most_bytes &&
        fits(rule.operations, call.operations) && fits(rule.registered, call.registered) && table.available(rule) != nullptr)
      return &rule;
  return nullptr;
}

}  // namespace gyre::plugin
