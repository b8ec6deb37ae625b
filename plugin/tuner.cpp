#include "plugin/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gyre::plugin {
namespace {

/// Whether NCCL limits the channels that it is told to those it has: not where it goes by CollNet, nor where it does not say how many nodes
/// there are (2.19 and 2.20).
bool limits_channels(const TunerRule& rule, int64_t nodes) {
  if (nodes == TunerRule::any) return false;
  if (rule.algorithm == NCCL_ALGO_NVLS) return nodes == 1;
  return rule.algorithm != NCCL_ALGO_COLLNET_DIRECT && rule.algorithm != NCCL_ALGO_COLLNET_CHAIN;
}

bool fits(int64_t wanted, int64_t is) { return wanted == TunerRule::any || wanted == is; }

bool fills_nodes(int64_t ranks, int64_t nodes) { return nodes > 0 && ranks % nodes == 0; }

bool fits(const TunerRule& rule, int64_t ranks, int64_t nodes) {
  if (rule.ranks_per_node != TunerRule::any && !(fills_nodes(ranks, nodes) && ranks / nodes == rule.ranks_per_node)) return false;
  const bool of_nodes = rule.most_nodes == TunerRule::any ? fits(rule.nodes, nodes) : rule.nodes <= nodes && nodes <= rule.most_nodes;
  return of_nodes && fits(rule.ranks, ranks);
}

std::vector<TunerRule> rules_for(std::span<const TunerRule> rules, int64_t ranks, int64_t nodes) {
  std::vector<TunerRule> own;
  std::copy_if(rules.begin(), rules.end(), std::back_inserter(own),
               [&](const TunerRule& rule) { return rule.has_algorithm() && fits(rule, ranks, nodes); });
  for (TunerRule& rule : own)
    if (!limits_channels(rule, nodes)) rule.channels = 0;
  return own;
}

}  // namespace

Tuner::Tuner(std::span<const TunerRule> rules, int64_t ranks, int64_t nodes) : rules_(rules_for(rules, ranks, nodes)), index_(rules_) {}

bool all_nccls_own(std::span<const TunerRule> rules, int64_t ranks, int64_t nodes) {
  const auto of_it = [&](const TunerRule& rule) { return fits(rule, ranks, nodes); };
  return std::ranges::any_of(rules, of_it) && rules_for(rules, ranks, nodes).empty();
}

std::vector<TunerRule> rules_beside(std::span<const TunerRule> rules, int64_t ranks, int64_t nodes) {
  std::vector<TunerRule> own;
  std::ranges::copy_if(rules, std::back_inserter(own),
                       [&](const TunerRule& rule) { return rule.gyre_beside && rule.nodes == nodes && fits(rule, ranks, nodes); });
  return own;
}

std::string why_none(std::span<const TunerRule> rules, int64_t ranks, int64_t nodes) {
  if (!fills_nodes(ranks, nodes)) return "they are not as many on each node";
  const auto same = [&](const TunerRule& rule) { return rule.ranks_per_node == ranks / nodes; };
  if (std::none_of(rules.begin(), rules.end(), same)) return fmt::format("it has nothing for {} ranks on a node", ranks / nodes);
  int64_t most_nodes = 1;
  for (const TunerRule& rule : rules)
    if (same(rule)) most_nodes = std::max(most_nodes, rule.most_nodes);
  if (most_nodes > 1 && nodes > most_nodes)
    return fmt::format("what it has for {} ranks on a node goes up to {} nodes", ranks / nodes, most_nodes);
  return fmt::format("with {} ranks on a node it has choices only for other numbers of nodes", ranks / nodes);
}

const TunerRule* Tuner::choose(const TunerCall& call, const CostTable& table) const noexcept {
  const TunerRule* first = nullptr;
  for (const int64_t operations : {TunerRule::any, call.operations}) {
    for (const int64_t registered : {TunerRule::any, call.registered}) {
      for (const uint32_t i : index_.fitting({call.collective, operations, registered}, call.bytes)) {
        const TunerRule* rule = &rules_[i];
        if (first != nullptr && rule > first) break;
        if (table.available(*rule) == nullptr) continue;
        first = rule;
        break;
      }
    }
  }
  return first;
}

}  // namespace gyre::plugin
