#include "plugin/tuner_index.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace gyre::plugin {
namespace {

/// A rule begins to fit, or no longer does.
struct Bound {
  uint64_t bytes;
  uint32_t rule;
  bool begins;
};

std::vector<Bound> bounds_of(std::span<const TunerRule> rules, std::span<const uint32_t> members) {
  std::vector<Bound> bounds;
  bounds.reserve(2 * members.size());
  for (const uint32_t i : members) {
    if (rules[i].most_bytes < rules[i].least_bytes) continue;
    bounds.push_back({rules[i].least_bytes, i, true});
    if (rules[i].most_bytes < std::numeric_limits<uint64_t>::max()) bounds.push_back({rules[i].most_bytes + 1, i, false});
  }
  std::sort(bounds.begin(), bounds.end(), [](const Bound& a, const Bound& b) { return a.bytes < b.bytes; });
  return bounds;
}

/// An algorithm with a protocol.
size_t kind_of(const TunerRule& rule) {
  return static_cast<size_t>(rule.algorithm) * NCCL_NUM_PROTOCOLS + static_cast<size_t>(rule.protocol);
}

TunerIndex::Key key_of(const TunerRule& rule) { return {rule.collective, rule.operations, rule.registered}; }

}  // namespace

TunerIndex::TunerIndex(std::span<const TunerRule> rules) {
  std::vector<uint32_t> order(rules.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key_of(rules[a]) < key_of(rules[b]); });
  for (auto first = order.begin(); first != order.end();) {
    const Key key = key_of(rules[*first]);
    const auto end = std::find_if(first, order.end(), [&](uint32_t i) { return key_of(rules[i]) != key; });
    add(key, rules, {first, end});
    first = end;
  }
  segments_.push_back({0, static_cast<uint32_t>(rules_.size())});  // so that every one has a next
}

void TunerIndex::add(const Key& key, std::span<const TunerRule> rules, std::span<const uint32_t> members) {
  Group group{key, segments_.size()};
  std::array<std::set<uint32_t>, size_t{NCCL_NUM_ALGORITHMS} * NCCL_NUM_PROTOCOLS> open;
  const std::vector<Bound> bounds = bounds_of(rules, members);
  for (size_t i = 0; i < bounds.size(); ++i) {
    auto& kind = open[kind_of(rules[bounds[i].rule])];
    if (bounds[i].begins)
      kind.insert(bounds[i].rule);
    else
      kind.erase(bounds[i].rule);
    if (i + 1 < bounds.size() && bounds[i + 1].bytes == bounds[i].bytes) continue;
    segments_.push_back({bounds[i].bytes, static_cast<uint32_t>(rules_.size())});
    const auto begin = static_cast<std::ptrdiff_t>(rules_.size());
    for (const auto& fitting : open)
      if (!fitting.empty()) rules_.push_back(*fitting.begin());
    std::sort(rules_.begin() + begin, rules_.end());
  }
  group.end = segments_.size();
  if (group.end > group.first) groups_.push_back(group);
}

std::span<const uint32_t> TunerIndex::fitting(const Key& key, uint64_t bytes) const noexcept {
  const auto group = std::lower_bound(groups_.begin(), groups_.end(), key, [](const Group& g, const Key& k) { return g.key < k; });
  if (group == groups_.end() || group->key != key) return {};
  const std::span segments(segments_.data() + group->first, group->end - group->first);
  const auto next = std::upper_bound(segments.begin(), segments.end(), bytes, [](uint64_t b, const Segment& s) { return b < s.from; });
  if (next == segments.begin()) return {};
  const Segment* segment = &*(next - 1);
  return {rules_.data() + segment->rules, (segment + 1)->rules - segment->rules};
}

}  // namespace gyre::plugin
