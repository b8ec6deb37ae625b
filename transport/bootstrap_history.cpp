#include "transport/bootstrap_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "transport/bootstrap_calls.h"

namespace gyre::transport::bootstrap {

// Whoever sees the new plan sees that the slot is being written, and whoever sees the new state sees the plan.
void History::add(uint64_t number, uint64_t plan, bool refused) {
  Slot& slot = slots_[number % kept];
  slot.state.store(0, std::memory_order_relaxed);
  slot.plan.store(plan, std::memory_order_release);
  slot.state.store((number + 1) << 1 | static_cast<uint64_t>(refused), std::memory_order_release);
}

void History::name(uint64_t plan, std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (names_.size() >= most_names) {
    std::set<uint64_t> used;
    for (const Slot& slot : slots_) used.insert(slot.plan.load(std::memory_order_relaxed));
    std::erase_if(names_, [&](const auto& name) { return used.count(name.first) == 0; });
  }
  names_.try_emplace(plan, text.substr(0, max_text));
}

std::vector<Made> History::calls() const {
  std::vector<Made> calls;
  for (const Slot& slot : slots_) {
    const uint64_t state = slot.state.load(std::memory_order_acquire);
    const uint64_t plan = slot.plan.load(std::memory_order_acquire);
    if (state == 0 || slot.state.load(std::memory_order_relaxed) != state) continue;
    calls.push_back({(state >> 1) - 1, plan, (state & 1) != 0, {}});
  }
  std::sort(calls.begin(), calls.end(), [](const Made& a, const Made& b) { return a.number < b.number; });
  return calls;
}

// | u64 question | u32 number of names | u64 plan, u32 length, text … | u64 number, u64 plan, u8 refused … |
Message History::message(uint64_t question) const {
  const std::vector<Made> calls = this->calls();
  std::map<uint64_t, std::string> names;
  {
    const std::lock_guard lock(mutex_);
    for (const Made& call : calls) {
      const auto known = names_.find(call.plan);
      if (known != names_.end()) names.insert(*known);
    }
  }
  Message message{Kind::history, {}};
  put(message.payload, question);
  put(message.payload, static_cast<uint32_t>(names.size()));
  for (const auto& [plan, text] : names) {
    put(message.payload, plan);
    put(message.payload, static_cast<uint32_t>(text.size()));
    message.payload += text;
  }
  for (const Made& call : calls) {
    put(message.payload, call.number);
    put(message.payload, call.plan);
    put(message.payload, static_cast<uint8_t>(call.refused));
  }
  return message;
}

std::vector<Made> take_history(std::string_view payload) {
  std::map<uint64_t, std::string> names;
  const uint32_t count = take<uint32_t>(payload).value_or(0);
  for (uint32_t i = 0; i < count; ++i) {
    const auto plan = take<uint64_t>(payload);
    const auto length = take<uint32_t>(payload);
    if (!plan || !length || *length > payload.size()) return {};
    names.emplace(*plan, payload.substr(0, *length));
    payload.remove_prefix(*length);
  }
  std::vector<Made> calls;
  while (!payload.empty()) {
    const auto number = take<uint64_t>(payload);
    const auto plan = take<uint64_t>(payload);
    const auto refused = take<uint8_t>(payload);
    if (!number || !plan || !refused) return {};
    const auto named = names.find(*plan);
    calls.push_back({*number, *plan, *refused != 0, named != names.end() ? named->second : fmt::format("plan={:#x}", *plan)});
  }
  return calls;
}

std::optional<uint64_t> first_difference(const std::vector<std::vector<Made>>& ranks) {
  std::map<uint64_t, const Made*> made;  // by number, as the lowest rank made it
  std::optional<uint64_t> first;
  for (const auto& calls : ranks) {
    for (const Made& call : calls) {
      const Made& other = *made.try_emplace(call.number, &call).first->second;
      if (call.differs(other)) first = std::min(first.value_or(call.number), call.number);
    }
  }
  return first;
}

std::string compare_histories(const std::vector<std::vector<Made>>& ranks) {
  const auto first = first_difference(ranks);
  if (!first) return {};
  std::vector<std::optional<Call>> of_ranks;
  for (const auto& calls : ranks) {
    auto& mine = of_ranks.emplace_back();
    for (const Made& call : calls) {
      if (call.number == *first) mine = Call{call.number, call.plan, call.text};
    }
  }
  return compare_made(*first, of_ranks);
}

}  // namespace gyre::transport::bootstrap
