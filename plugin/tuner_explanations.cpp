#include "plugin/tuner_explanations.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <set>
#include <vector>

#include "base/log.h"
#include "plugin/tuner_words.h"

namespace gyre::plugin {
namespace {

template <size_t count>
std::string word(const std::array<std::string_view, count>& words, int number, std::string_view what) {
  return number >= 0 && static_cast<size_t>(number) < count ? std::string(words[static_cast<size_t>(number)])
                                                            : fmt::format("{} {}", what, number);
}

std::string name_of(int algorithm, int protocol) {
  return word(tuner_algorithms, algorithm, "algorithm") + "/" + word(tuner_protocols, protocol, "protocol");
}

std::string kind_in_words(ncclFunc_t collective, int size_class) {
  const std::string name = word(tuner_collectives, collective, "collective");
  if (size_class == 0) return name + " of nothing";
  return fmt::format("{}, {} to {} bytes", name, uint64_t{1} << (size_class - 1), (uint64_t{2} << (size_class - 1)) - 1);
}

/// The first of the least, which NCCL takes; -1: there is none.
int cheapest(const CostTable& table) {
  int least = -1;
  for (int i = 0; i < table.algorithms * table.protocols; ++i) {
    if (table.costs[i] >= 0 && (least < 0 || table.costs[i] < table.costs[least])) least = i;
  }
  return least;
}

std::string prices(const CostTable& table, uint64_t bytes) {
  std::vector<int> all;
  for (int i = 0; i < table.algorithms * table.protocols; ++i) {
    if (table.costs[i] >= 0) all.push_back(i);
  }
  std::ranges::stable_sort(all, {}, [&](int i) { return table.costs[i]; });
  std::string words;
  for (const int i : all)
    words += fmt::format("{} {} {:.1f} us", words.empty() ? "" : ",", name_of(i / table.protocols, i % table.protocols), table.costs[i]);
  return words.empty() ? "" : fmt::format("; NCCL's prices of {} bytes:{}", bytes, words);
}

/// At the nearest size.
std::string measured(const TunerRule* rule, uint64_t bytes) {
  if (rule == nullptr || rule->measured.empty()) return "";
  const auto far = [&](const TunerRule::Times& times) { return times.bytes > bytes ? times.bytes - bytes : bytes - times.bytes; };
  const TunerRule::Times& nearest = *std::ranges::min_element(rule->measured, {}, far);
  return fmt::format("; measured for it at {} bytes: {}", nearest.bytes, nearest.words);
}

struct Living {
  std::mutex mutex;
  std::set<TunerExplanations*> all;
  const pid_t process = ::getpid();  // a forked child has said nothing that its parent does not say
};
Living& living();

// Of communicators that nobody has ended, as torch's where destroy_process_group is not called. NCCL's logger may have ended before.
void count_at_exit() {
  Living& still = living();
  if (still.process != ::getpid()) return;
  const std::lock_guard lock(still.mutex);
  if (!still.all.empty()) log::set_sink(nullptr);
  for (TunerExplanations* one : still.all) one->count();
}

Living& living() {
  static auto& one = *new Living;  // never destroyed
  static const bool counts [[maybe_unused]] = std::atexit(count_at_exit) == 0;
  return one;
}

}  // namespace

TunerExplanations::TunerExplanations(std::string file) : file_(std::move(file)) {
  const std::lock_guard lock(living().mutex);
  living().all.insert(this);
}

TunerExplanations::~TunerExplanations() {
  {
    const std::lock_guard lock(living().mutex);
    living().all.erase(this);
  }
  count();
}

std::string TunerExplanations::in_words(const TunerRule* rule, int entry, const CostTable& table) const {
  if (rule != nullptr) {
    const std::string channels = rule->channels > 0 ? fmt::format(" on {} channels", rule->channels) : "";
    return fmt::format("{}{}, by {}", name_of(rule->algorithm, rule->protocol), channels, file_);
  }
  return entry < 0 ? "NCCL's own choice" : name_of(entry / table.protocols, entry % table.protocols) + ", NCCL's own choice";
}

void TunerExplanations::note(const TunerCall& call, const CostTable& table, const TunerRule* rule) noexcept {
  try {
    const int entry = rule == nullptr ? cheapest(table) : -1;
    const auto size_class = static_cast<int>(std::bit_width(call.bytes));
    const std::lock_guard lock(mutex_);
    Used& used = used_[{call.collective, size_class, rule, entry}];
    if (++used.calls != 1) return;
    used.choice = in_words(rule, entry, table);
    log::write(log::Level::info, fmt::format("explain: {}: {}{}{}", kind_in_words(call.collective, size_class), used.choice,
                                             measured(rule, call.bytes), prices(table, call.bytes)));
  } catch (...) {  // a collective ends on any failure of its tuner
    return;
  }
}

void TunerExplanations::count() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, used] : used_)
      log::write(log::Level::info,
                 fmt::format("explain: {}: {} {} times", kind_in_words(std::get<0>(key), std::get<1>(key)), used.choice, used.calls));
    used_.clear();
  } catch (...) {
    return;
  }
}

}  // namespace gyre::plugin
