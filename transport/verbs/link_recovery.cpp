// What a connection does when paths fail: wire.h says why nothing is lost or arrives twice.
#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "transport/verbs/link.h"

namespace gyre::transport::verbs {
namespace {

constexpr uint16_t all_pieces = 0xffff;

uint64_t checksum(const Mail& mail) {
  const auto* bytes = reinterpret_cast<const char*>(&mail);
  return fnv1a({bytes + sizeof mail.checksum, sizeof mail - sizeof mail.checksum});
}

}  // namespace

void Link::lose(Path& path, const Error& why) {
  if (!path.alive() || failure_) return;
  path.fail();
  failed_[path.index()] = path.generation();
  unsaid_ = true;
  if (alive() == 0) return fail(why);
  if (on_failure_) on_failure_();
  log::warn("a path of {} to {} failed, {} are left: {}", paths_.size(), peer_, alive(), why.what);
}

// Called whenever there is news: of a path that was seen out, of room, of the peer's mail.
void Link::recover() {
  if (failure_) return;
  const bool seen_out = std::all_of(paths_.begin(), paths_.end(), [](const auto& path) { return path->alive() || path->drained(); });
  if (unsaid_ && seen_out && write_mail()) unsaid_ = false;
  if (heard_ && !unsaid_ && peer_said_.failed == failed_) take_up();
}

bool Link::write_mail() {
  Path* path = some_path();
  if (!path || !path->has_room()) return false;
  Mail& mail = rings_->own_mails[path->index()];
  mail.failed = failed_;
  mail.oldest = oldest_;
  for (size_t entry = 0; entry < ring_entries; ++entry) mail.pieces[entry] = posted_[entry].request ? posted_[entry].pieces : all_pieces;
  mail.checksum = checksum(mail);
  const uint8_t rail = path->rail_number();
  const Path::Write write{&mail, sizeof mail, rings_memory_->local_key(rail),
                          peers_rings_ + offsetof(Rings, mails) + path->index() * sizeof mail, peers_keys_[rail]};
  const int error = path->write(write, Immediate{.mail = true}.bits(), nullptr, 0);
  if (error != 0) lose(*path, {Code::system, fmt::format("{} to {}: ibv_post_send: {}", path->rail().name(), peer_, errno_text(error))});
  return error == 0;
}

void Link::take_mail(uint8_t index) {
  const Mail mail = rings_->mails[index];
  if (mail.checksum != checksum(mail)) return;  // the next one is being written
  peer_said_ = mail;
  heard_ = true;
  for (const auto& path : paths_)
    if (path->generation() <= mail.failed[path->index()]) lose(*path, {Code::remote, fmt::format("{} has seen it fail", peer_)});
  recover();
}

// Both know of the same failures, and the peer has seen its ends out: what it does not have will not come, and is sent again.
void Link::take_up() {
  for (size_t i = 0; i < sending_.size();) {
    Sending& sending = *sending_[i];
    const auto entry = (sending.sequence - 1) % ring_entries;
    const bool all = sending.sequence <= peer_said_.oldest || peer_said_.pieces[entry] == all_pieces;
    for (uint8_t number = 0; number <= sending.last; ++number) {
      const auto bit = static_cast<uint16_t>(1U << number);
      Piece& piece = sending.pieces[number];
      if ((sending.under_way & bit) == 0 || paths_[piece.path]->alive()) continue;
      if (all || (peer_said_.pieces[entry] & bit) != 0)
        sending.under_way &= static_cast<uint16_t>(~bit);
      else
        sending.unsent |= bit;
    }
    if (sending.under_way == 0) {
      sending.under_way = 1;
      acknowledged(sending, 0);
      continue;
    }
    ++i;
  }
  credits_unsent_.clear();
  for (uint64_t sequence = oldest_; sequence < posted_count_; ++sequence)
    if (posted_[sequence % ring_entries].request) credits_unsent_.push_back(static_cast<uint8_t>(sequence % ring_entries));
  heard_ = false;
  unsent_ = true;
  (void)catch_up();
}

bool Link::catch_up() {
  if (failure_ || (!unsent_ && !unsaid_)) return true;
  if (unsaid_) recover();
  while (!credits_unsent_.empty() && write_credit(credits_unsent_.front())) credits_unsent_.erase(credits_unsent_.begin());
  bool left = !credits_unsent_.empty();
  for (size_t i = 0; i < sending_.size() && !failure_; ++i) {
    Sending& sending = *sending_[i];
    for (uint8_t number = 0; number <= sending.last && sending.unsent != 0; ++number) {
      const auto bit = static_cast<uint16_t>(1U << number);
      if ((sending.unsent & bit) == 0) continue;
      Path* path = some_path();
      if (!path) return false;
      sending.pieces[number].path = path->index();
      if (!write_piece(sending, number)) {
        left = true;
        break;
      }
      sending.unsent &= static_cast<uint16_t>(~bit);
    }
  }
  unsent_ = left;
  return !left && !unsaid_;
}

}  // namespace gyre::transport::verbs
