// A connection that has no path left, and goes on over another Endpoint (detour.h).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "transport/verbs/link.h"

namespace gyre::transport::verbs {

void Link::use_detour(std::unique_ptr<Endpoint> endpoint, bool takes_cuda) {
  detour_ = std::make_unique<Detour>(std::move(endpoint), static_cast<Detour::Receiver&>(*this));
  detour_takes_cuda_ = takes_cuda;
}

void Link::progress_detour() {
  if (failure_ || !has_detour()) return;
  const char* why = detour_->progress();
  if (why && !peer_said_goodbye()) lose_detour(why);
}

// As a path that has failed: what was under way is another's now.
void Link::lose_detour(const std::string& why) {
  if (failure_ || !has_detour()) return;
  detour_->stop();
  failed_[detour_path] = 1;
  unsaid_ = true;
  if (carrying_.empty()) try_paths();
  if (carrying_.empty() && !trying()) return fail({Code::remote, fmt::format("{}: no path is left, and over TCP instead: {}", peer_, why)});
  log::info("{} can't be reached over TCP any more, if its paths fail: {}", peer_, why);
  if (on_failure_) on_failure_();
}

// UCX does not say that nothing goes through; a peer that is only stopped takes nothing either. Time in which nobody looked does not count.
void Link::watch_detour(Clock::time_point now) {
  constexpr std::chrono::minutes longest_pause{2};
  if (!has_detour()) return;
  const bool moved = std::exchange(detour_steps_, detour_->steps()) != detour_->steps();
  const Clock::duration looked = std::min<Clock::duration>(now - std::exchange(detour_watched_, now), std::chrono::seconds(1));
  detour_pause_ = moved || detour_->idle() ? Clock::duration{} : detour_pause_ + looked;
  if (detour_pause_ > longest_pause) lose_detour("nothing has gone through for 2 minutes");
}

bool Link::detours(const Registered* memory) {
  if (!memory || memory->kind() == MemoryKind::host || detour_takes_cuda_) return true;
  fail({Code::invalid_usage, fmt::format("no path to {} is left, and this UCX can't move GPU memory over TCP instead", peer_)});
  return false;
}

bool Link::send_by_detour(Sending& sending, uint8_t number) {
  if (!detours(sending.memory)) return false;
  const Piece& piece = sending.pieces[number];
  const Immediate told{.lap = lap_of(sending.sequence),
                       .whole = sending.whole,
                       .too_long = sending.too_long,
                       .entry = entry_of(sending.sequence),
                       .piece = number,
                       .last = sending.last};
  const auto offset = static_cast<uint64_t>(piece.data - sending.pieces[0].data);
  detour_->send(told, offset, {piece.data, piece.bytes}, &sending, number);
  return true;
}

// A ring's entry is written by the peer's device too, when a path is back, with the same.
void Link::take_credit(const Credit& credit) {
  if (credit.sequence == 0) return;
  Credit& place = rings_->offered[entry_of(credit.sequence)];
  if (credit.sequence > offered_ && place.sequence < credit.sequence) place = credit;
}

void Link::take_word(Immediate told, uint32_t bytes) {
  if (failure_) return;
  if (told.confirms)
    confirmed(told);
  else
    arrived(bytes, told);
}

std::byte* Link::place_of(Immediate told, uint64_t offset, uint64_t bytes) {
  const Credit& credit = rings_->own[told.entry];
  const Posted& posted = posted_[told.entry];
  const bool waits = posted.request && lap_of(credit.sequence) == told.lap && (posted.pieces >> told.piece & 1U) == 0;
  if (!waits || offset > credit.bytes || bytes > credit.bytes - offset || !detours(posted.memory)) return nullptr;
  return reinterpret_cast<std::byte*>(credit.address) + offset;  // NOLINT(performance-no-int-to-ptr): as it was told to the peer
}

void Link::taken(Request* owner, uint8_t piece) {
  if (!failure_) acknowledged(*static_cast<Sending*>(owner), piece);
}

}  // namespace gyre::transport::verbs
