#include "plugin/tuner_explanations.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "base/log.h"
#include "plugin/tuner_words.h"

namespace gyre::plugin {
namespace {

std::string name_of(size_t algorithm, size_t protocol) {
  const std::string a =
      algorithm < tuner_algorithms.size() ? std::string(tuner_algorithms[algorithm]) : fmt::format("algorithm {}", algorithm);
  return fmt::format("{}/{}", a,
                     protocol < tuner_protocols.size() ? std::string(tuner_protocols[protocol]) : fmt::format("protocol {}", protocol));
}

std::string kind_in_words(ncclFunc_t collective, int size_class) {
  const bool known = collective >= 0 && static_cast<size_t>(collective) < tuner_collectives.size();
  const std::string name =
      known ? std::string(tuner_collectives[static_cast<size_t>(collective)]) : fmt::format("collective {}", collective);
  if (size_class == 0) return name + " of nothing";
  return fmt::format("{}, {} to {} bytes", name, uint64_t{1} << (size_class - 1), (uint64_t{2} << (size_class - 1)) - 1);
}

/// What NCCL has for the call, in words, the cheapest first.
std::vector<std::pair<float, std::string>> priced(const CostTable& table) {
  std::vector<std::pair<float, std::string>> all;
  for (int a = 0; a < table.algorithms; ++a) {
    for (int p = 0; p < table.protocols; ++p) {
      const float us = table.costs[static_cast<ptrdiff_t>(a) * table.protocols + p];
      if (us >= 0) all.emplace_back(us, name_of(static_cast<size_t>(a), static_cast<size_t>(p)));
    }
  }
  std::ranges::sort(all);
  return all;
}

std::string prices(const std::vector<std::pair<float, std::string>>& all, uint64_t bytes) {
  std::string words;
  for (const auto& [us, name] : all) words += fmt::format("{} {} {:.1f} us", words.empty() ? "" : ",", name, us);
  return words.empty() ? "" : fmt::format("; NCCL's prices of {} bytes:{}", bytes, words);
}

}  // namespace

void TunerExplanations::note(const TunerCall& call, const CostTable& table, const TunerRule* rule) noexcept {
  try {
    const auto all = priced(table);
    const std::string own = all.empty() ? "NCCL's own choice" : all.front().second + ", NCCL's own choice";
    const std::string choice =
        rule == nullptr ? own : name_of(static_cast<size_t>(rule->algorithm), static_cast<size_t>(rule->protocol)) + ", by " + file_;
    const Kind kind{call.collective, std::bit_width(call.bytes)};
    {
      const std::lock_guard lock(mutex_);
      if (++used_[kind][choice] != 1) return;
    }
    log::write(log::Level::info, fmt::format("explain: {}: {}{}", std::apply(kind_in_words, kind), choice, prices(all, call.bytes)));
  } catch (...) {  // a collective ends on any failure of its tuner
    return;
  }
}

TunerExplanations::~TunerExplanations() {
  try {
    for (const auto& [kind, choices] : used_) {
      for (const auto& [choice, calls] : choices)
        log::write(log::Level::info, fmt::format("explain: {}: {} {} times", std::apply(kind_in_words, kind), choice, calls));
    }
  } catch (...) {
    return;
  }
}

}  // namespace gyre::plugin
