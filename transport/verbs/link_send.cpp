#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>

#include "transport/verbs/link.h"

namespace gyre::transport::verbs {
namespace {

constexpr uint64_t split_from = 64 * 1024;  // below, a second path costs more than it brings
constexpr uint64_t piece_alignment = 128;
constexpr uint64_t overhead = 512;  // of a message, in bytes of a path's time
constexpr const char* too_long = "the message is longer than the receive";

bool of_gpu(const Registered* memory) { return memory && memory->kind() == MemoryKind::cuda; }

}  // namespace

// Into groups_ what belongs there.
void Link::look_for_credits() {
  while (true) {
    const auto entry = static_cast<uint8_t>(offered_ % ring_entries);
    Credit& next = rings_->offered[entry];
    if (std::atomic_ref(next.sequence).load(std::memory_order_acquire) != offered_ + 1) return;
    if (const auto group = next.group(); group.size > 1 && group.place == 0) groups_[entry] = {group.size, 0, 0};
    unmatched_.push_back(entry);
    ++offered_;
  }
}

// Null: there is none of this tag.
const Credit* Link::match(uint64_t tag) {
  look_for_credits();
  const auto found =
      std::find_if(unmatched_.begin(), unmatched_.end(), [&](uint8_t entry) { return rings_->offered[entry].plain_tag() == tag; });
  return found == unmatched_.end() ? nullptr : &rings_->offered[*found];
}

Path* Link::lightest(size_t bytes) {
  Path* best = carrying_.front();
  if (carrying_.size() > 1) {
    for (Path* path : carrying_)
      if (load_[path->index()] < load_[best->index()]) best = path;
    load_[best->index()] += (bytes + overhead) * mbit_per_s_ / best->mbit_per_s();
  }
  return best->has_room() ? best : nullptr;
}

// A short message takes the path that has had least for its speed; a long one all, each with as much as it is fast. 0: no room;
// too_many: there is no room for so many pieces, ever.
uint8_t Link::split(std::span<const std::byte> data, Pieces& pieces) {
  if (carrying_.empty()) return split_detour(data, pieces);
  if (data.size() >= split_from && !only_) return stripe(data, pieces);
  const Path* path = lightest(data.size());
  if (!path) return 0;
  if (!path->takes(data.size())) return stripe(data, pieces);
  pieces[0] = {data.data(), static_cast<uint32_t>(data.size()), path->index()};
  return 1;
}

uint8_t Link::stripe(std::span<const std::byte> data, Pieces& pieces) {
  uint8_t count = 0;
  size_t from = 0;
  uint64_t speed = 0;
  bool room = true;
  for (Path* path : carrying_) {
    speed += path->mbit_per_s();
    const size_t until = path == carrying_.back() ? data.size() : data.size() * speed / mbit_per_s_ / piece_alignment * piece_alignment;
    while (from < until) {
      if (count == max_pieces) return too_many;
      room = room && path->has_room();
      const auto bytes = static_cast<uint32_t>(std::min<size_t>(until - from, path->rail().max_piece()));
      pieces[count++] = {data.data() + from, bytes, path->index()};
      from += bytes;
    }
  }
  return room ? count : 0;
}

uint8_t Link::split_detour(std::span<const std::byte> data, Pieces& pieces) {
  constexpr size_t most = size_t{1} << 30U;
  if (!has_detour()) return 0;
  if (data.size() > most * max_pieces) return too_many;
  uint8_t count = 0;
  size_t from = 0;
  do {
    const size_t bytes = std::min(data.size() - from, most);
    pieces[count++] = {data.data() + from, static_cast<uint32_t>(bytes), detour_path};
    from += bytes;
  } while (from < data.size());
  return count;
}

Request* Link::refuse_length() {
  Receiving* request = receives_.take();
  if (!request) return nullptr;
  request->failure = "the message is longer than 16 of the longest writes of its ports";
  request->code = Code::invalid_argument;
  request->done = true;
  return request;
}

// A piece, on a path with room. False: the path failed in this very call.
[[gnu::always_inline]] inline bool Link::write(Path& path, const Path::Write& what, Immediate told, Path::Ended whose) {
  // Where packets of one message take different ways, only the last write should have to wait for all of them.
  if (told.whole && path.spreads(what.bytes)) [[unlikely]] {
    if (!posted(path, path.write(what), "ibv_post_send")) return false;
    // From here on it is under way: should this fail, recovery sends it again when the path is seen out.
    (void)posted(path, path.write({}, told.bits(), whose), "ibv_post_send");
    return true;
  }
  return posted(path, path.write(what, told.bits(), whose), "ibv_post_send");
}

bool Link::write_piece(Sending& sending, uint8_t number) {
  const Piece& piece = sending.pieces[number];
  const uint8_t entry = entry_of(sending.sequence);
  sent_[entry].paths[number] = piece.path;
  if (piece.path == detour_path) return send_by_detour(sending, number);
  Path& path = *paths_[piece.path];
  const Credit& credit = rings_->offered[entry];
  if (!path.alive() || !path.has_room()) return false;
  const auto [index, rail, peers_rail, sharing] = path.place();
  const Path::Write what{piece.data,
                         piece.bytes,
                         sending.memory ? sending.memory->local_key(rail) : 0,
                         credit.address + static_cast<uint64_t>(piece.data - sending.pieces[0].data),
                         credit.keys[peers_rail],
                         of_gpu(sending.memory)};
  if (sending.quiet) return posted(path, path.write_signaled(what, {&sending, number}), "ibv_post_send");
  const Immediate told{.lap = lap_of(sending.sequence),
                       .with = sending.with,
                       .whole = sending.whole,
                       .too_long = sending.too_long,
                       .entry = entry,
                       .piece = number,
                       .last = sending.last};
  return write(path, what, told, {&sending, number});
}

// A message that will be sent, in pieces up to this one.
[[gnu::always_inline]] inline void Link::begin(Sending& sending, uint64_t sequence, size_t bytes, const Registered* memory, uint8_t last) {
  sending.done = false;
  sending.bytes = bytes;
  sending.failure = nullptr;
  sending.handle = &sending;  // which tells it from a receive
  sending.memory = memory;
  sending.sequence = sequence;
  sending.under_way = static_cast<uint16_t>((2U << last) - 1);
  sending.unsent = 0;
  sending.last = last;
  sending.too_long = sending.quiet = sending.confirmed = false;
  sending.with = 0;
  sending_.push_back(sending);
}

// In most cases the next receive is the one, waits alone, and takes the message in one piece by the only path.
Request* Link::send(uint64_t tag, std::span<const std::byte> data, const Registered* memory) {
  const Credit& credit = rings_->offered[offered_ % ring_entries];
  const uint64_t sequence = offered_ + 1;
  Path* path = only_;  // none where the link has failed
  const bool usual = path && unmatched_.empty() &&
                     std::atomic_ref(rings_->offered[offered_ % ring_entries].sequence).load(std::memory_order_acquire) == sequence &&
                     credit.tag == Credit::alone(tag) && data.size() <= credit.bytes && path->takes(data.size());
  if (!usual) return send_otherwise(tag, data, memory);
  Sending* request = path->has_room() ? sends_.take_used() : nullptr;
  if (!request) return nullptr;
  ++offered_;
  const uint8_t entry = entry_of(sequence);
  const auto [index, rail, peers_rail, sharing] = path->place();
  const Path::Write what{
      data.data(),   static_cast<uint32_t>(data.size()), memory ? memory->local_key(rail) : 0, credit.address, credit.keys[peers_rail],
      of_gpu(memory)};
  const Immediate told{.lap = lap_of(sequence), .whole = data.size() == credit.bytes, .entry = entry};
  begin(*request, sequence, data.size(), memory, 0);
  request->whole = told.whole;
  request->pieces[0] = {data.data(), what.bytes, index};
  sent_[entry].tell(*request);
  sent_[entry].paths[0] = index;
  if (!write(*path, what, told, {request, 0})) [[unlikely]]
    leave_for_later(*request, 0);
  return request;
}

Request* Link::send_otherwise(uint64_t tag, std::span<const std::byte> data, const Registered* memory) {
  if (failure_) return refuse();
  const Credit* matched = match(tag);
  if (!matched) return nullptr;
  const Credit& credit = *matched;
  const bool grouped = credit.group().size > 1;
  // By its place: what it says, the peer may overwrite.
  const auto entry = static_cast<uint8_t>(matched - rings_->offered.data());
  if (grouped && group_waits(group_of(entry))) return nullptr;
  Sending* request = sends_.take_used();
  if (!request) return nullptr;
  const uint8_t count = split(data, request->pieces);
  if (count == 0 || count == too_many) {
    sends_.give(request);
    return count == 0 ? nullptr : refuse_length();
  }
  unmatched_.erase(std::find(unmatched_.begin(), unmatched_.end(), entry));
  const bool fits = data.size() <= credit.bytes;
  begin(*request, sequence_at(entry), data.size(), memory, fits ? static_cast<uint8_t>(count - 1) : 0);
  request->whole = data.size() == credit.bytes;
  if (!fits) {
    request->too_long = true;
    request->failure = too_long;
    request->code = Code::invalid_argument;
    request->pieces[0].bytes = 0;
  }
  if (grouped) join_group(*request, credit);
  sent_[entry].tell(*request);
  for (uint8_t i = 0; i <= request->last && !failure_; ++i)
    if (!write_piece(*request, i)) leave_for_later(*request, i);
  return request;
}

// The path failed in this very call, or is full.
void Link::leave_for_later(Sending& sending, uint8_t piece) {
  sending.unsent |= static_cast<uint16_t>(1U << piece);
  unsent_ = true;
  if (on_failure_) on_failure_();
}

// Whole messages of a group go without an immediate, all over one path, and the last one's tells of them. A path that fails is recovery's.
void Link::join_group(Sending& sending, const Credit& credit) {
  const auto [size, place] = credit.group();
  Group& group = group_of(entry_of(sending.sequence));
  Path& path = *paths_[group.path];
  --group.left;
  const uint8_t by = sending.pieces[0].path;
  if (group.left > 0) {
    if (by == detour_path || sending.last > 0 || !sending.whole || (group.quiet != 0 && !path.alive())) return;
    if (group.quiet == 0) group.path = by;
    sending.pieces[0].path = group.path;
    sending.quiet = true;
    group.quiet |= static_cast<uint8_t>(1U << place);
  } else if (group.quiet != 0 && path.alive()) {
    if (sending.last == 0) {
      sending.pieces[0].path = group.path;
      sending.with = group.quiet;
      return;
    }
    const auto first = static_cast<unsigned>(std::countr_zero(group.quiet));
    const uint64_t sequence = sending.sequence - place + first;
    (void)write_word(path, {.lap = lap_of(sequence),
                            .with = static_cast<uint8_t>(group.quiet & (group.quiet - 1U)),
                            .whole = true,
                            .entry = entry_of(sequence)});
  }
}

bool Link::write_word(Path& path, Immediate word) { return posted(path, path.write({}, word.bits(), {}), "ibv_post_send"); }

// Of a message that is not there any more, it was heard by mail.
void Link::confirmed(Immediate word) {
  for (Sending& sending : sending_) {
    if (entry_of(sending.sequence) != word.entry || lap_of(sending.sequence) != word.lap) continue;
    sending.confirmed = true;
    if (sending.under_way == 0) finish(sending);
    return;
  }
}

bool Link::has(uint64_t sequence) {
  for (const Sending& sending : sending_)
    if (sending.sequence == sequence) return true;
  return false;
}

// Words, the goodbye, and what a failed path has brought unheard are no message of anybody's, but the peer waits for them.
bool Link::sending() const {
  const auto is_quiet = [](const Path* path) { return path->quiet(); };
  const bool speaks = (shape_.confirms || goodbye_) && !std::all_of(carrying_.begin(), carrying_.end(), is_quiet);
  const bool owes = !failure_ && (goodbye_ ? unsaid_ : taken_ != failed_);
  return !sending_.empty() || !words_unsent_.empty() || speaks || owes || (has_detour() && !detour_->idle());
}

}  // namespace gyre::transport::verbs
