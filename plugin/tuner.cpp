#include "plugin/tuner.h"

#include <algorithm>
#include <iterator>

namespace gyre::plugin {
namespace {

bool fits(int64_t wanted, int64_t is) { return wanted == TunerRule::any || wanted == is; }

}  // namespace

Tuner::Tuner(std::span<const TunerRule> rules, int64_t ranks, int64_t nodes) {
  std::copy_if(rules.begin(), rules.end(), std::back_inserter(rules_),
               [&](const TunerRule& rule) { return fits(rule.ranks, ranks) && fits(rule.nodes, nodes); });
}

const TunerRule* Tuner::choose(const TunerCall& call, const CostTable& table) const noexcept {
  for (const TunerRule& rule : rules_)
    if (rule.collective == call.collective && rule.least_bytes <= call.bytes && call.bytes <= rule.most_bytes &&
        fits(rule.operations, call.operations) && fits(rule.registered, call.registered) && table.available(rule) != nullptr)
      return &rule;
  return nullptr;
}

}  // namespace gyre::plugin
