#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <utility>

#include "transport/verbs/link.h"

namespace gyre::transport::verbs {
namespace {

constexpr const char* too_long_came = "the message is longer than the receive";

}  // namespace

Request* Link::receive(uint64_t tag, std::span<std::byte> place, const Registered* memory, Credit::Group group) {
  if (failure_) [[unlikely]]
    return refuse();
  if (!has_room(1)) return nullptr;
  Receiving* request = receives_.take();
  const uint8_t entry = entry_of(++posted_count_);
  posted_[entry] = {request, memory};
  Credit& credit = rings_->own[entry];
  credit.address = reinterpret_cast<uint64_t>(place.data());
  credit.bytes = place.size();
  credit.set(tag, group);
  if (memory)
    for (size_t rail = 0; rail < rails_.size(); ++rail) credit.keys[rail] = memory->remote_key(rail);
  credit.sequence = posted_count_;
  if (unsent_ || !write_credit(entry)) [[unlikely]] {
    credits_unsent_.push_back(entry);
    unsent_ = true;
    if (on_failure_) on_failure_();
  }
  return request;
}

bool Link::write_credit(uint8_t entry) {
  Path* path = some_path();
  posted_[entry].credit_path = path ? path->index() : detour_path;
  if (!path && has_detour()) return detour_->send(rings_->own[entry]), true;
  if (!path || !path->has_room()) return false;
  const auto [index, rail, peers_rail, sharing] = path->place();
  const Path::Write write{&rings_->own[entry], sizeof(Credit), rings_memory_->local_key(rail),
                          peers_rings_ + offsetof(Rings, offered) + entry * sizeof(Credit), peers_keys_[peers_rail]};
  return posted(*path, path->write(write), "ibv_post_send");
}

void Link::arrived(uint32_t bytes, Immediate told) {
  Posted& posted = posted_[told.entry];
  const Credit& credit = rings_->own[told.entry];
  const auto bit = static_cast<uint16_t>(1U << told.piece);
  const auto [size, place] = credit.group();
  const bool fits = told.piece <= told.last && told.with >> size == 0 && (told.with >> place & 1U) == 0;
  if (!posted.request || lap_of(credit.sequence) != told.lap || (posted.pieces & bit) != 0 || !fits) [[unlikely]]
    return fail({Code::remote, fmt::format("{} sent piece {} of {} for receive {}, which does not wait for it", peer_, told.piece,
                                           told.last + 1, told.entry)});
  posted.pieces |= bit;
  posted.bytes += bytes;
  for (unsigned with = told.with; with != 0; with &= with - 1) {
    const auto other = static_cast<uint8_t>(told.entry - place + std::countr_zero(with));
    if (!posted_[other].request || posted_[other].pieces != 0) [[unlikely]]
      return fail({Code::remote, fmt::format("{} told twice of receive {}", peer_, other)});
    received(other, rings_->own[other].bytes, false);
  }
  if (failure_) [[unlikely]]
    return;  // a confirmation could not be posted
  if (std::popcount(posted.pieces) > told.last) received(told.entry, told.whole ? credit.bytes : posted.bytes, told.too_long);
}

void Link::received(uint8_t entry, uint64_t bytes, bool too_long) {
  Receiving& request = *std::exchange(posted_[entry].request, nullptr);
  request.bytes = bytes;
  if (too_long) {
    request.failure = too_long_came;
    request.code = Code::invalid_argument;
  }
  request.done = true;
  while (oldest_ < posted_count_ && !posted_[oldest_ % ring_entries].request) ++oldest_;
  if (!shape_.confirms) return;
  words_unsent_.push_back({.lap = lap_of(rings_->own[entry].sequence), .confirms = true, .entry = entry});
  unsent_ = true;
  (void)catch_up();
}

}  // namespace gyre::transport::verbs
