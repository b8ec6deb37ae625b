#include "engine/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "engine/arguments.h"
#include "engine/combine.h"
#include "kernels/reduce_host.h"

namespace gyre::engine {
namespace {

constexpr int pieces_at_once = 4;  // of a strand before the others have their turn

std::string what_of(uint64_t count, DataType type) { return fmt::format("{} of {}", count, name(type)); }
std::string what_of(uint64_t count, uint64_t type) {
  return type < data_type_count ? what_of(count, static_cast<DataType>(type)) : fmt::format("{} of type {}", count, type);
}
bool sends(const Transfer& transfer) { return transfer.kind == Transfer::Kind::send; }

}  // namespace

Batch::Batch(Rank rank, std::vector<transport::Fifo*> fifos, size_t slot_bytes, Away away)
    : rank_(rank), fifos_(std::move(fifos)), slot_bytes_(slot_bytes), away_(away), begun_(fifos_.size()) {}

std::optional<Error> Batch::refuse(std::span<const Transfer> transfers) const {
  std::vector<const Transfer*> own[2];
  for (size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& t = transfers[i];
    const auto wrong = [&](const std::string& what) {
      return Error{Code::invalid_argument,
                   fmt::format("exchange: transfer {} ({} rank {}): {}", i, sends(t) ? "to" : "from", t.peer, what)};
    };
    if (t.peer < 0 || static_cast<size_t>(t.peer) >= fifos_.size()) return wrong(fmt::format("there are {} ranks", fifos_.size()));
    if (t.peer != rank_ && fifos_[static_cast<size_t>(t.peer)] == nullptr)
      return Error{Code::remote, wrong("this rank is not joined with it").what};
    if (static_cast<size_t>(t.type) >= data_type_count) return wrong(fmt::format("there is no type {}", static_cast<int>(t.type)));
    const size_t element = size_of(t.type);
    if (t.count > most_bytes / element) return wrong(fmt::format("{} are more than {} bytes", what_of(t.count, t.type), most_bytes));
    if (t.count != 0 && t.data == nullptr) return wrong(fmt::format("null buffer for {} elements", t.count));
    if (reinterpret_cast<uintptr_t>(t.data) % element != 0) return wrong(fmt::format("the buffer must be aligned to {} bytes", element));
    if (t.peer == rank_) own[sends(t) ? 0 : 1].push_back(&t);
  }
  const auto& [out, in] = own;
  if (out.size() != in.size()) {
    return Error{Code::invalid_usage,
                 fmt::format("exchange: rank {} sends itself {} messages and receives {}", rank_, out.size(), in.size())};
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i]->count == in[i]->count && out[i]->type == in[i]->type) continue;
    return Error{Code::invalid_usage, fmt::format("exchange: rank {} sends itself {} and receives {}", rank_,
                                                  what_of(out[i]->count, out[i]->type), what_of(in[i]->count, in[i]->type))};
  }
  return std::nullopt;
}

void Batch::bind(std::span<const Transfer> transfers, uint64_t next_call, TimeLimit limit) {
  next_call_ = next_call;
  limit_ = limit;
  stranger_ = -1;
  wrong_.reset();
  messages_.clear();
  strands_.clear();
  active_.clear();
  copy_own(transfers);
  // A counting sort by strand, stable: first how many, then where, then each to its place.
  places_.assign(2 * fifos_.size(), 0);
  const auto place_of = [](const Transfer& t) { return 2 * static_cast<size_t>(t.peer) + (sends(t) ? 0 : 1); };
  for (const Transfer& t : transfers) {
    if (t.peer != rank_) ++places_[place_of(t)];
  }
  uint32_t total = 0;
  for (size_t i = 0; i < places_.size(); ++i) {
    const uint32_t count = std::exchange(places_[i], total);
    if (count == 0) continue;
    Strand strand{static_cast<Rank>(i / 2), i % 2 == 0, total, total + count, 0, {total, false, 0}, {total, false, 0}};
    Count& begun = begun_[i / 2];
    uint64_t& messages = strand.sends ? begun.sends : begun.receives;
    strand.number = messages + 1;
    messages += count;
    total += count;
    active_.push_back(static_cast<uint32_t>(strands_.size()));
    strands_.push_back(strand);
  }
  messages_.resize(total);
  for (const Transfer& t : transfers) {
    if (t.peer != rank_) messages_[places_[place_of(t)]++] = {static_cast<std::byte*>(t.data), t.count * size_of(t.type), t.count, t.type};
  }
}

void Batch::copy_own(std::span<const Transfer> transfers) const {
  auto receive = transfers.begin();
  for (const Transfer& t : transfers) {
    if (t.peer != rank_ || !sends(t)) continue;
    receive = std::find_if(receive, transfers.end(), [&](const Transfer& r) { return r.peer == rank_ && !sends(r); });
    if (t.count != 0) std::memmove(receive->data, t.data, t.count * size_of(t.type));
    ++receive;
  }
}

// What travels with a piece. A header's says only which message it is of; an element's also how many there are and of what type, so that
// on a posted Fifo a message that was not asked for reaches nobody's memory.
uint64_t Batch::word(const Strand& strand, const Place& place) const {
  const uint64_t header = mix(number(strand, place) * 0x9e3779b97f4a7c15 + 0x62617463);
  if (!place.header_through) return header;
  const Message& message = messages_[place.message];
  return mix(header + message.count * 0xd1342543de82ef95 + static_cast<uint64_t>(message.type) + 1);
}

size_t Batch::piece_bytes(const Place& place) const {
  return place.header_through ? std::min(slot_bytes_, messages_[place.message].bytes - place.offset) : sizeof(Header);
}

// To the next piece.
void Batch::pass(Place& place) const {
  if (place.header_through) place.offset += piece_bytes(place);
  place.header_through = true;
  if (place.offset == messages_[place.message].bytes) place = {place.message + 1, false, 0};
}

bool Batch::finished(const Strand& strand) const {
  if (strand.at.message != strand.end) return false;
  transport::Fifo& out = fifo(strand);
  return !strand.sends || !out.posted() || out.completed() == out.sent();
}

Work::Moved Batch::move() {
  bool any = false;
  for (size_t i = 0; i < active_.size();) {
    Strand& strand = strands_[active_[i]];
    for (int piece = 0; piece < pieces_at_once && strand.at.message != strand.end && move(strand); ++piece) any = true;
    if (!finished(strand)) {
      ++i;
      continue;
    }
    active_[i] = active_.back();
    active_.pop_back();
    any = true;
  }
  return {any, active_.empty()};
}

bool Batch::move(Strand& strand) {
  if (!(strand.sends ? send(strand) : receive(strand))) return false;
  pass(strand.at);
  return true;
}

bool Batch::send(Strand& strand) {
  transport::Fifo& out = fifo(strand);
  const Message& message = messages_[strand.at.message];
  const size_t bytes = piece_bytes(strand.at);
  const uint64_t tag = word(strand, strand.at);
  if (strand.at.header_through && out.direct()) return out.send_from(tag, message.data + strand.at.offset, bytes);
  std::byte* slot = out.reserve(bytes);
  if (slot == nullptr) return false;
  if (strand.at.header_through) {
    const std::byte* data = message.data + strand.at.offset;
    if (out.posted() || bytes < away_.messages || message.count * size_of(message.type) < away_.calls) {
      kernels::copy(slot, data, bytes);
    } else {
      kernels::copy_away(slot, data, bytes);
      kernels::fence_away();
    }
  } else {
    const Header header{number(strand, strand.at), message.count, static_cast<uint64_t>(message.type)};
    std::memcpy(slot, &header, sizeof header);
  }
  out.commit(tag, bytes);
  return true;
}

bool Batch::receive(Strand& strand) {
  transport::Fifo& in = fifo(strand);
  if (in.posted()) announce(strand);
  const transport::Arrival arrival = in.front();
  if (arrival.data == nullptr || !accept(strand, arrival)) return false;
  if (strand.at.header_through) {
    std::byte* data = messages_[strand.at.message].data + strand.at.offset;
    if (arrival.data != data) kernels::copy(data, arrival.data, arrival.bytes);
  }
  in.pop();
  return true;
}

// As far ahead as the connection allows: each piece has its place in the user's memory.
void Batch::announce(Strand& strand) {
  for (Place& place = strand.announced; place.message != strand.end; pass(place)) {
    transport::Fifo& in = fifo(strand);
    std::byte* data = place.header_through && in.direct() ? messages_[place.message].data + place.offset : nullptr;
    if (!in.expect(word(strand, place), data, piece_bytes(place))) return;
  }
}

bool Batch::accept(const Strand& strand, const transport::Arrival& arrival) {
  if (arrival.plan != word(strand, strand.at) || arrival.bytes != piece_bytes(strand.at)) {
    stranger_ = strand.peer;
    return false;
  }
  if (strand.at.header_through) return true;
  Header header;
  std::memcpy(&header, arrival.data, sizeof header);
  const Message& message = messages_[strand.at.message];
  if (header.count == message.count && header.type == static_cast<uint64_t>(message.type)) [[likely]]
    return true;
  stranger_ = strand.peer;
  if (!wrong_) {
    wrong_ = Error{Code::invalid_usage,
                   fmt::format("sends and receives differ: rank {} sends {} to rank {}, which receives {} (message {})", strand.peer,
                               what_of(header.count, header.type), rank_, what_of(message.count, message.type), number(strand, strand.at))};
  }
  return false;
}

std::vector<Rank> Batch::awaited() const {
  std::vector<Rank> peers;
  for (const uint32_t i : active_) peers.push_back(strands_[i].peer);
  return peers;
}

std::string Batch::where() const {
  if (active_.empty()) return "for nothing";
  const Strand& strand = strands_[active_.front()];
  if (strand.at.message == strand.end) return fmt::format("for its last sends to rank {} to complete", strand.peer);
  const Message& message = messages_[strand.at.message];
  return fmt::format("{} rank {}, message {} ({}), {} of {} bytes so far{}", strand.sends ? "to send to" : "to receive from", strand.peer,
                     number(strand, strand.at), what_of(message.count, message.type), strand.at.offset, message.bytes,
                     active_.size() == 1 ? "" : fmt::format(", and {} more", active_.size() - 1));
}

Work::Description Batch::description() const {
  size_t out = 0;
  for (const Strand& strand : strands_) out += strand.sends ? strand.end - strand.first : 0;
  return {next_call_, 0, fmt::format("exchange sends={} receives={}", out, messages_.size() - out)};
}

std::vector<transport::Pair> Batch::pairs() const {
  std::vector<transport::Pair> all;
  for (size_t peer = 0; peer < begun_.size(); ++peer) {
    const Count& begun = begun_[peer];
    if (begun.sends + begun.receives != 0) all.push_back({static_cast<Rank>(peer), begun.sends, begun.receives, 0, 0});
  }
  for (const uint32_t i : active_) {
    const Strand& strand = strands_[i];
    const auto pair = std::find_if(all.begin(), all.end(), [&](const transport::Pair& p) { return p.peer == strand.peer; });
    // Of sends that are out and not complete, the last is waited for.
    Place at = strand.at;
    if (at.message == strand.end) --at.message;
    (strand.sends ? pair->awaited_send : pair->awaited_receive) = number(strand, at);
  }
  return all;
}

}  // namespace gyre::engine
