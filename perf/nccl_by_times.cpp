#include "perf/nccl_by_times.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "perf/nccl_beside.h"
#include "perf/nccl_forced.h"

namespace gyre::perf {
namespace {

// Of NCCL's longest line: what is smaller takes as long.
constexpr uint64_t nccl_line_bytes = 128;

struct Timed {
  double median_us = 0, spread_us = 0;
};

Timed timed(std::vector<double> us) {
  std::ranges::sort(us);
  const size_t half = us.size() / 2;
  return {us.size() % 2 == 1 ? us[half] : (us[half - 1] + us[half]) / 2, us.back() - us.front()};
}

bool beats(const Timed& first, const Timed& second) {
  return second.median_us - first.median_us > std::max(first.spread_us, second.spread_us);
}

SizeChoice choose(uint64_t bytes, const std::map<std::string, Timed>& all, const std::string& before) {
  const Timed& own = all.at(std::string(nccls_own));
  SizeChoice size{bytes, own.median_us, own.spread_us, "", 0, std::string(nccls_own)};
  double least_us = own.median_us;
  for (const auto& [choice, time] : all) {
    if (choice == nccls_own || choice == gyre_beside) continue;
    if (size.best.empty() || time.median_us < size.best_us) {
      size.best = choice;
      size.best_us = time.median_us;
    }
    if (beats(time, own) && time.median_us < least_us) {
      size.chosen = choice;
      least_us = time.median_us;
    }
  }
  const auto same = all.find(before);
  if (same != all.end() && beats(same->second, own) && !beats(all.at(size.chosen), same->second)) size.chosen = before;
  if (const auto gyres = all.find(std::string(gyre_beside)); gyres != all.end()) {
    size.gyre_us = gyres->second.median_us;
    const bool best = size.best.empty() || beats(gyres->second, all.at(size.best));
    size.gyre_beside = best && beats(gyres->second, own);
  }
  return size;
}

uint64_t geometric_middle(uint64_t first, uint64_t second) {
  return static_cast<uint64_t>(std::ceil(std::sqrt(static_cast<double>(first) * static_cast<double>(second))));
}

}  // namespace

std::vector<SizeChoice> choose_by_times(const std::map<std::string, RoundTimes>& times) {
  std::vector<SizeChoice> sizes;
  const RoundTimes& own = times.at(std::string(nccls_own));
  sizes.reserve(own.size());
  for (const auto& [bytes, us] : own) {
    std::map<std::string, Timed> all;
    for (const auto& [choice, by_size] : times) {
      const auto here = by_size.find(bytes);
      if (here != by_size.end() && here->second.size() == us.size()) all.emplace(choice, timed(here->second));
    }
    sizes.push_back(choose(bytes, all, sizes.empty() ? "" : sizes.back().chosen));
  }
  return sizes;
}

Thresholds thresholds_of(const std::vector<SizeChoice>& sizes) {
  Thresholds out;
  const auto add = [&](uint64_t from, const std::string& chosen, bool beside) {
    if (out.empty() || out.back().chosen != chosen || out.back().gyre_beside != beside) out.push_back({from, chosen, beside});
  };
  const auto add_size = [&](uint64_t from, const SizeChoice& size) { add(from, size.chosen, size.gyre_beside); };
  const std::string not_measured(nccls_own);
  if (sizes.front().bytes > nccl_line_bytes) add(0, not_measured, false);
  add_size(out.empty() ? 0 : sizes.front().bytes, sizes.front());
  for (size_t i = 1; i < sizes.size(); ++i) add_size(geometric_middle(sizes[i - 1].bytes, sizes[i].bytes), sizes[i]);
  add(sizes.back().bytes + 1, not_measured, false);
  return out;
}

}  // namespace gyre::perf
