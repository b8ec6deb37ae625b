#include "engine/settled.h"

#include <algorithm>
#include <cstring>

#include "transport/shared_heap.h"

namespace gyre::engine {
namespace {

constexpr size_t most_calls = 8;

uint64_t heap_changes() { return transport::SharedHeap::of_process().changes(); }

}  // namespace

// By words: a call of memcmp would take longer.
bool Shown::is(const std::byte* line) const {
  uint64_t differs = 0;
  for (size_t at = 0; at < sizeof *this; at += sizeof differs) {
    uint64_t a = 0, b = 0;
    std::memcpy(&a, reinterpret_cast<const std::byte*>(this) + at, sizeof a);
    std::memcpy(&b, line + at, sizeof b);
    differs |= a ^ b;
  }
  return differs == 0;
}

Settled::Settled(int ranks) : calls_(most_calls) {
  for (Call& call : calls_) {
    call.shown.resize(static_cast<size_t>(ranks));
    call.memory.resize(static_cast<size_t>(ranks));
  }
}

const Settled::Call* Settled::find(uint64_t plan, Rank rank, const RankMemory& own) {
  changes_ = heap_changes();
  const Call& call = calls_[plan % most_calls];
  const Shown& shown = call.shown[static_cast<size_t>(rank)];
  const bool same = call.plan == plan && shown.input == reinterpret_cast<uintptr_t>(own.input) &&
                    shown.output == reinterpret_cast<uintptr_t>(own.output) && call.changes == changes_;
  return same ? &call : nullptr;
}

void Settled::keep(uint64_t plan, const std::vector<Shown>& shown, const std::vector<RankMemory>& memory) {
  Call& call = calls_[plan % most_calls];
  const bool news = std::any_of(shown.begin(), shown.end(), [](const Shown& by) { return by.has_news != 0; });
  call.plan = news ? 0 : plan;
  call.changes = changes_;
  call.shown = shown;
  call.memory = memory;
}

void Settled::forget() {
  for (Call& call : calls_) call.plan = 0;
}

}  // namespace gyre::engine
