#include "engine/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/fuse.h"
#include "topo/algorithms.h"
#include "transport/posted_fifo.h"

namespace gyre::engine {
namespace {

constexpr uint32_t most_slices = 8;         // in flight together: more would overlap no more, and cost the proof time
constexpr size_t overlap_bytes = 16 << 10;  // chunks above it are cut, so that sending, receiving and reducing overlap

size_t divide_up(size_t a, size_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// FNV-1a over the text, then mixed so that every bit depends on all characters.
uint64_t mixed(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93;
  return h ^ h >> 32;
}

}  // namespace

std::vector<size_t> chunk_bounds(size_t count, uint32_t chunks, size_t unit) {
  const size_t units = divide_up(count, unit);
  const size_t each = units / chunks;
  const size_t odd = units % chunks;
  std::vector<size_t> bounds;
  for (size_t i = 0; i <= chunks; ++i) bounds.push_back(std::min(count, (i * each + i * odd / chunks) * unit));
  return bounds;
}

Result<std::shared_ptr<const Proven>> prove(schedule::Schedule schedule, const transport::Slots& slots) {
  auto proven = std::make_shared<Proven>();
  proven->schedule = std::move(schedule);
  proven->slices = std::clamp(slots.credits / 2, 1U, most_slices);
  for (const auto mode : {schedule::Mode::buffered, schedule::Mode::posted}) {
    const uint32_t credits = mode == schedule::Mode::posted ? transport::PostedFifo::certain_credits(slots) : slots.credits;
    for (const bool in_place : {false, true}) {
      proven->proof = GYRE_TRY(schedule::verify(proven->schedule, {credits, proven->slices, mode, in_place}));
    }
  }
  return std::shared_ptr<const Proven>(std::move(proven));
}

Result<std::shared_ptr<const Proven>> prove(std::string_view family, int ranks, uint32_t channels, const transport::Slots& slots) {
  const topo::Family* found = topo::family_named(family);
  if (found == nullptr) return Error{Code::invalid_argument, fmt::format("there is no algorithm '{}'", family)};
  return prove(schedule::fuse(found->make(ranks, channels)), slots);
}

Plan::Plan(std::shared_ptr<const Proven> proven, const Call& call, size_t slot_bytes, size_t unit_bytes)
    : proven_(std::move(proven)), call_(call) {
  const size_t element = size_of(call.type);
  const size_t unit = std::max<size_t>(1, unit_bytes / element);
  bounds_ = chunk_bounds(call.count, schedule().chunks, unit);
  size_t longest = 0;
  for (size_t c = 0; c + 1 < bounds_.size(); ++c) longest = std::max(longest, bounds_[c + 1] - bounds_[c]);
  // A message carries one slice of each of its chunks and must fit a slot. Fewer slices than were proven need no more credits.
  const size_t most = std::max<size_t>(unit, slot_bytes / element / schedule().longest_message() / unit * unit);
  const size_t slices =
      std::max<size_t>(divide_up(longest, most), std::min<size_t>(proven_->slices, divide_up(longest, overlap_bytes / element)));
  rounds_ = static_cast<uint32_t>(divide_up(std::max<size_t>(1, slices), proven_->slices));
  slices_ = static_cast<uint32_t>(divide_up(std::max<size_t>(1, slices), rounds_));
  slice_elements_ = std::max(unit, divide_up(divide_up(longest, size_t{rounds_} * slices_), unit) * unit);
  text_ = fmt::format("{} count={} type={} op={} algorithm={}", name(call.collective), call.count, name(call.type), name(call.op),
                      schedule().family);
  hash_ = mixed(text_);
}

}  // namespace gyre::engine
