// What a connection does when paths fail: wire.h says why nothing is lost or arrives twice.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
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
  if (path.state() == Path::State::failed || failure_) return;
  const bool carried = path.alive();
  path.fail();
  failed_[path.index()] = std::max(failed_[path.index()], path.generation());
  unsaid_ = true;
  wait_for(path.index());
  count_paths();
  // Nobody can say any more that it has joined the others: they are tried unasked.
  if (alive() == 0 && !has_detour()) try_paths();
  if (alive() == 0 && !has_detour() && !trying()) {
    if (on_end_) on_end_();
    return fail(why);
  }
  if (on_failure_) on_failure_();
  if (!carried)
    log::info("a path to {} does not carry yet: {}", peer_, why.what);
  else
    log::warn("a path of {} to {} failed, {}: {}", paths_.size(), peer_,
              alive() > 0    ? fmt::format("{} are left", alive())
              : has_detour() ? "TCP takes over"
                             : "one that is coming back is tried",
              why.what);
}

void Link::lose(const Rail& rail, std::optional<uint32_t> pair, const Error& why) {
  for (const auto& path : paths_)
    if (&path->rail() == &rail && (!pair || path->number() == *pair)) lose(*path, why);
  recover();
}

void Link::lose_device(const Rail& rail, const Error& why) {
  for (const auto& path : paths_)
    if (&path->rail() == &rail && path->state() != Path::State::offered) {
      path->write_off();
      gone_[path->index()] = path->generation();
    }
  lose(rail, std::nullopt, why);
}

bool Link::has_others(const Rail& rail) const {
  return std::any_of(carrying_.begin(), carrying_.end(), [&](const Path* path) { return &path->rail() != &rail; });
}

// Called whenever there is news: of a path that was seen out, of room, of the peer's mail.
void Link::recover() {
  if (failure_) return;
  const bool seen_out =
      std::all_of(paths_.begin(), paths_.end(), [](const auto& path) { return path->state() != Path::State::failed || path->out(); });
  if (unsaid_ && seen_out && write_mail()) unsaid_ = false;
  if (heard_ && !unsaid_ && std::equal(failed_.begin(), failed_.end(), peer_said_.paths.begin(), [](uint32_t own, const PathNews& peer) {
        return own == peer.failed;
      }))
    take_up();
  rejoin(false);
}

void Link::report(Mail& mail) {
  mail.number = ++mails_;
  mail.goodbye = goodbye_ ? 1 : 0;
  mail.oldest = oldest_;
  look_for_credits();
  mail.offered = offered_;
  for (size_t entry = 0; entry < ring_entries; ++entry)
    mail.ahead[entry] = std::atomic_ref(rings_->offered[entry].sequence).load(std::memory_order_acquire) > offered_;
  for (const auto& one : paths_) {
    PathNews& news = mail.paths[one->index()];
    news.failed = failed_[one->index()];
    news.offered = one->state() == Path::State::failed ? 0 : one->generation();
    news.joined = one->state() == Path::State::joined || one->alive() ? one->generation() : 0;
    news.gone = gone_[one->index()];
    if (one->state() != Path::State::failed) news.card = one->card();
  }
  mail.paths[detour_path].failed = failed_[detour_path];
  mail.pieces.fill(0);  // what is not posted yet may be sent before the peer reads this
  for (uint64_t sequence = oldest_ + 1; sequence <= posted_count_; ++sequence) {
    const Posted& posted = posted_[entry_of(sequence)];
    mail.pieces[entry_of(sequence)] = posted.request ? posted.pieces : all_pieces;
  }
  mail.checksum = checksum(mail);
}

std::string Link::report() {
  Mail mail;
  report(mail);
  return {reinterpret_cast<const char*>(&mail), sizeof mail};
}

// The last acknowledgement may have been lost with the peer's queue pair.
void Link::take_farewell(std::string_view bytes) {
  Mail mail;
  if (failure_) return;
  if (bytes.size() == sizeof mail) {
    std::memcpy(&mail, bytes.data(), sizeof mail);
    if (mail.checksum == checksum(mail) && mail.number > peer_said_.number) peer_said_ = mail;
  }
  for (Sending& sending : sending_)
    if (peer_has(sending.sequence) == all_pieces) finish(sending);
}

bool Link::write_mail() {
  Path* path = some_path();
  if (path ? !path->has_room() : !has_detour()) return false;
  Mail& mail = rings_->own_mails[path ? path->index() : 0];
  report(mail);
  if (!path) return detour_->send(mail), true;
  const auto [index, rail, peers_rail, sharing] = path->place();
  const Path::Write write{&mail, sizeof mail, rings_memory_->local_key(rail), peers_rings_ + offsetof(Rings, mails) + index * sizeof mail,
                          peers_keys_[peers_rail]};
  return posted(*path, path->write(write, Immediate{.mail = true}.bits(), {}), "ibv_post_send");
}

void Link::take_mail(const Mail& mail) {
  if (mail.checksum != checksum(mail) || mail.number <= peer_said_.number) return;  // a later one is being written, or was read
  peer_said_ = mail;
  heard_ = true;
  for (const auto& path : paths_) {
    const uint32_t failed = mail.paths[path->index()].failed;
    if (failed <= failed_[path->index()]) continue;
    if (path->generation() <= failed) lose(*path, {Code::remote, fmt::format("{} has seen it fail", peer_)});
    failed_[path->index()] = failed;
    unsaid_ = true;
  }
  if (mail.paths[detour_path].failed > failed_[detour_path]) lose_detour(fmt::format("{} has seen it fail", peer_));
  recover();
}

// Of this receive, by the peer's last mail, which may be older than the receive.
uint16_t Link::peer_has(uint64_t sequence) const {
  if (sequence <= peer_said_.oldest) return all_pieces;
  return sequence - peer_said_.oldest <= ring_entries ? peer_said_.pieces[entry_of(sequence)] : 0;
}

// Both know of the same failures, and the peer has seen its ends out: what it does not have will not come, and is sent again.
void Link::take_up() {
  heard_ = false;
  if (taken_ == failed_) return;
  taken_ = failed_;
  const uint64_t complete = std::max(peer_said_.oldest, offered_ - std::min<uint64_t>(offered_, ring_entries));
  for (uint64_t sequence = complete + 1; sequence <= offered_ && !failure_; ++sequence) account_for(sequence);
  for (Sending& sending : sending_) take_up(sending);
  for (uint64_t sequence = std::max(oldest_, peer_said_.offered) + 1; sequence <= posted_count_; ++sequence) {
    const uint8_t entry = entry_of(sequence);
    const bool waits = std::find(credits_unsent_.begin(), credits_unsent_.end(), entry) != credits_unsent_.end();
    const bool ahead = sequence - peer_said_.offered <= ring_entries && peer_said_.ahead[entry];
    if (!waits && !lives(posted_[entry].credit_path) && !ahead) credits_unsent_.push_back(entry);
  }
  unsent_ = true;
  (void)catch_up();
}

void Link::take_up(Sending& sending) {
  const uint16_t there = peer_has(sending.sequence);
  const bool all = there == all_pieces;
  for (uint8_t number = 0; number <= sending.last; ++number) {
    const auto bit = static_cast<uint16_t>(1U << number);
    if (lives(sending.pieces[number].path)) continue;
    if ((there & bit) != 0) {
      sending.under_way &= static_cast<uint16_t>(~bit);
      continue;
    }
    sending.under_way |= bit;
    sending.unsent |= bit;
    sending.with = 0;
    sending.quiet = false;
  }
  sending.confirmed = sending.confirmed || all;
  if (sending.under_way == 0 && (!shape_.confirms || sending.confirmed)) finish(sending);
}

// A message that this end has done with, and of which the peer has not heard.
void Link::account_for(uint64_t sequence) {
  const uint8_t entry = entry_of(sequence);
  const uint16_t there = peer_has(sequence);
  Sent& sent = sent_[entry];
  if (there == all_pieces || std::find(unmatched_.begin(), unmatched_.end(), entry) != unmatched_.end()) return;
  const bool done = !has(sequence);
  for (uint8_t piece = 0; piece <= sent.last; ++piece) {
    if ((there >> piece & 1U) != 0 || lives(sent.paths[piece])) continue;
    // What a device had when it failed may be lost, though it said that it has it.
    const bool gone = sent.paths[piece] != detour_path && peer_said_.paths[sent.paths[piece]].gone == failed_[sent.paths[piece]];
    if ((sent.quiet || sent.by_word) && !(gone && done && sent.quiet)) {
      leave_group(entry);
      if (done) tell_by_word(sequence);
    } else if (done) {
      return fail({Code::remote,
                   fmt::format("{} has lost a message that its device had taken; with GYRE_IB_CONFIRM=1 it would be sent again", peer_)});
    }
  }
}

// What was to be told with others of its group gets an immediate of its own.
void Link::leave_group(uint8_t entry) {
  if (!std::exchange(sent_[entry].quiet, false)) return;
  group_of(entry).quiet &= static_cast<uint8_t>(~(1U << rings_->offered[entry].group().place));
}

// Its data are there, and the peer is to hear so. A word that waits from last time still waits.
void Link::tell_by_word(uint64_t sequence) {
  const uint8_t entry = entry_of(sequence);
  sent_[entry].by_word = true;
  const bool waits =
      std::any_of(words_unsent_.begin(), words_unsent_.end(), [&](const Immediate& word) { return word.entry == entry && !word.confirms; });
  if (!waits) words_unsent_.push_back({.lap = lap_of(sequence), .whole = true, .entry = entry});
}

// True: none is left.
bool Link::write_words() {
  while (!words_unsent_.empty()) {
    const Immediate word = words_unsent_.front();
    Path* path = some_path();
    if (path ? !path->has_room() || !write_word(*path, word) : !has_detour()) return false;
    if (!path) detour_->send(word);
    if (!word.confirms) sent_[word.entry].paths[0] = path ? path->index() : detour_path;
    words_unsent_.erase(words_unsent_.begin());
  }
  return true;
}

bool Link::catch_up() {
  if (failure_ || (!unsent_ && !unsaid_)) return true;
  if (unsaid_) recover();
  Path* path = nullptr;
  const auto has_room = [&] {
    path = some_path();
    return path ? path->has_room() : has_detour();
  };
  while (!credits_unsent_.empty() && write_credit(credits_unsent_.front())) credits_unsent_.erase(credits_unsent_.begin());
  bool left = !credits_unsent_.empty();
  left = !write_words() || left;
  for (Sending& sending : sending_) {
    if (failure_) break;
    for (uint8_t number = 0; number <= sending.last && sending.unsent != 0; ++number) {
      const auto bit = static_cast<uint16_t>(1U << number);
      if ((sending.unsent & bit) == 0) continue;
      const bool room = has_room();
      const uint8_t by = path ? path->index() : detour_path;
      if (room && by != sending.pieces[number].path) {
        sending.pieces[number].path = by;
        sending.with = 0;
        sending.quiet = false;
        leave_group(entry_of(sending.sequence));
      }
      if (!room || !write_piece(sending, number)) {
        left = true;
        break;
      }
      sending.unsent &= static_cast<uint16_t>(~bit);
    }
  }
  unsent_ = left;
  if ((unsent_ || unsaid_) && on_failure_) on_failure_();
  return !left && !unsaid_;
}

}  // namespace gyre::transport::verbs
