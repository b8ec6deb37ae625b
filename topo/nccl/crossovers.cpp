#include "topo/nccl/crossovers.h"

namespace gyre::topo::nccl {
namespace {

/// Rising, with all powers of two among them, so that a rule with other numbers from one on is seen where it changes.
std::vector<uint64_t> looked_at(const Sizes& sizes) {
  std::vector<uint64_t> out{sizes.least};
  for (uint64_t power = 1; power <= sizes.most / 2; power *= 2) {
    for (uint64_t eighth = 8; eighth < 16; ++eighth) {
      const uint64_t size = power * eighth / 8;
      if (size > out.back() && size <= sizes.most) out.push_back(size);
    }
  }
  if (sizes.most > out.back()) out.push_back(sizes.most);
  return out;
}

/// The first of the sizes after `low`, up to `high`, at which it holds; it does at `high` and not at `low`.
template <class Holds>
uint64_t first_size(uint64_t low, uint64_t high, Holds holds) {
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

std::optional<Entry> best(const Seconds& seconds, uint64_t bytes) {
  std::optional<Entry> out;
  double least = 0;
  for (const Entry& entry : entries) {
    const auto time = seconds(entry, bytes);
    if (!time || (out && *time >= least)) continue;
    out = entry;
    least = *time;
  }
  return out;
}

std::vector<Change> changes(const Seconds& seconds, const Sizes& sizes) {
  std::vector<Change> out;
  uint64_t before = sizes.least;
  for (const uint64_t size : looked_at(sizes)) {
    const auto now = best(seconds, size);
    if (!now) return {};
    if (out.empty()) {
      out.push_back({size, *now});
    } else if (*now != out.back().best) {
      // Where a third one is best in between, it is passed over.
      out.push_back({first_size(before, size, [&](uint64_t bytes) { return best(seconds, bytes) == now; }), *now});
    }
    before = size;
  }
  return out;
}

std::optional<uint64_t> crossover(const Seconds& seconds, const Entry& first, const Entry& second, const Sizes& sizes) {
  if (!seconds(first, sizes.most) || !seconds(second, sizes.most)) return std::nullopt;
  const auto faster = [&](uint64_t bytes) { return *seconds(second, bytes) < *seconds(first, bytes); };
  const std::vector<uint64_t> all = looked_at(sizes);
  auto size = all.rbegin();
  while (size != all.rend() && faster(*size)) ++size;
  if (size == all.rbegin()) return std::nullopt;
  if (size == all.rend()) return sizes.least;
  return first_size(*size, *(size - 1), faster);
}

}  // namespace gyre::topo::nccl
