#include "engine/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "engine/choice.h"
#include "transport/board.h"

namespace gyre::engine {
namespace {

constexpr uint32_t least_credits = 2;
constexpr size_t least_slot_bytes = 4 << 10;
// Beyond that the copies leave the caches, and messages in pieces that stay there are as fast.
constexpr size_t most_bounce_bytes = 2 << 20;

transport::Slots slots_of(const Config& config) { return {static_cast<uint32_t>(*config.slots), *config.slot_bytes}; }

// One step: fewer, which keeps a message's cost per byte, and then smaller. False: there are none.
bool shrink(transport::Slots& slots) {
  if (slots.credits > least_credits) {
    slots.credits = std::max(least_credits, slots.credits / 2);
  } else if (slots.bytes > least_slot_bytes) {
    slots.bytes = std::max(least_slot_bytes, slots.bytes / 2 / least_slot_bytes * least_slot_bytes);
  } else {
    return false;
  }
  return true;
}

// 0: none.
size_t least_bound(const std::vector<Facts>& facts) {
  size_t least = 0;
  for (const Facts& f : facts) {
    if (f.memory_bytes != 0 && (least == 0 || f.memory_bytes < least)) least = f.memory_bytes;
  }
  return least;
}

// What connections leave.
size_t unconnected(const Config& config, size_t ranks) {
  if (*config.memory_bytes == 0) return SIZE_MAX;
  return *config.memory_bytes - connected_bytes(ranks, connected_channels(config), slots_of(config));
}

std::string in_words(const transport::Slots& slots) { return fmt::format("{} slots of {} bytes", slots.credits, slots.bytes); }

}  // namespace

size_t pair_bytes(size_t channels, const transport::Slots& slots) { return channels * 2 * slots.credits * slots.bytes; }

size_t connected_bytes(size_t ranks, size_t channels, const transport::Slots& slots) {
  if (ranks < 2) return 0;
  return (ranks - 1) * channels * transport::most_connection_bytes(slots) + transport::most_worker_bytes() + transport::Board::part_bytes();
}

Result<Config> within_memory(Config config, const std::vector<Facts>& facts) {
  const size_t ranks = facts.size();
  const size_t channels = connected_channels(config);
  const size_t allowed = least_bound(facts);
  config.memory_bytes.value = allowed;
  const auto needed = [&](const transport::Slots& slots) { return connected_bytes(ranks, channels, slots); };
  const auto within = [&](const transport::Slots& slots) { return allowed == 0 || needed(slots) <= allowed; };
  const bool by_default = std::all_of(facts.begin(), facts.end(), [](const Facts& f) { return f.slots_by_default; });
  const transport::Slots wished = slots_of(config);
  transport::Slots slots = wished;
  if (by_default) {
    // The bounds of defaults are no promise where even the least slots of so many channels or ranks are more.
    while ((pair_bytes(channels, slots) > most_pair_bytes || needed(slots) > most_default_bytes || !within(slots)) && shrink(slots)) {
    }
  }
  if (!within(slots)) {
    const std::string which = by_default ? "even the least slots" : "GYRE_SLOTS and GYRE_SLOT_BYTES";
    return Error{Code::invalid_argument, fmt::format("GYRE_MEMORY_BYTES={}: {} ranks on {} channels need {} bytes on each with {} ({})",
                                                     allowed, ranks, channels, needed(slots), which, in_words(slots))};
  }
  if (slots.credits != wished.credits || slots.bytes != wished.bytes) {
    log::info("{} instead of {} for {} ranks on {} channels: {} bytes on each at most", in_words(slots), in_words(wished), ranks, channels,
              needed(slots));
  }
  config.slots.value = slots.credits;
  config.slot_bytes.value = slots.bytes;
  return config;
}

size_t bounce_bytes(const Config& config, size_t ranks) {
  return unconnected(config, ranks) < 4 * most_bounce_bytes ? 0 : most_bounce_bytes;
}

size_t scratch_room(const Config& config, size_t ranks) {
  const size_t left = unconnected(config, ranks);
  return left == SIZE_MAX ? left : left - bounce_bytes(config, ranks);
}

}  // namespace gyre::engine
