#include "transport/verbs/link.h"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "transport/verbs/words.h"

namespace gyre::transport::verbs {
namespace {

constexpr uint64_t split_from = 64 * 1024;  // below, a second path costs more than it brings
constexpr uint64_t piece_alignment = 128;
/// Failures of a way to the peer, not of what is sent on it.
bool is_of_path(ibv_wc_status status) {
  return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR || status == IBV_WC_RESP_TIMEOUT_ERR ||
         status == IBV_WC_WR_FLUSH_ERR || status == IBV_WC_FATAL_ERR || status == IBV_WC_GENERAL_ERR;
}

constexpr const char* too_long = "the message is longer than the receive";

struct Card {
  uint64_t magic = 0;
  uint64_t rings = 0;
  std::array<uint32_t, max_rails> keys{};
  uint32_t paths = 0, unused = 0;
};
constexpr uint64_t magic = 0x3176'6562'7265'7967;  // "gyrebev1", as bytes

}  // namespace

Result<std::unique_ptr<Registered>> Registered::add(std::span<Rail* const> rails, std::span<std::byte> region) {
  auto memory = std::make_unique<Registered>();
  for (size_t i = 0; i < rails.size(); ++i) memory->regions_[i] = GYRE_TRY(rails[i]->add_memory(region.data(), region.size()));
  return memory;
}

Result<std::unique_ptr<Link>> Link::open(std::span<Rail* const> rails, uint32_t paths_per_rail, std::string peer) {
  if (rails.size() * paths_per_rail > max_paths)
    return Error{Code::invalid_argument, fmt::format("{} queue pairs on each of {} ports are more than {}", paths_per_rail, rails.size(), max_paths)};
  auto link = std::make_unique<Link>(std::move(peer));
  link->rails_.assign(rails.begin(), rails.end());
  for (uint32_t i = 0; i < paths_per_rail; ++i)
    for (size_t rail = 0; rail < rails.size(); ++rail)
      link->paths_.push_back(GYRE_TRY(Path::open(*link, *rails[rail], static_cast<uint8_t>(rail), static_cast<uint8_t>(link->paths_.size()), 1)));
  auto* rings = reinterpret_cast<std::byte*>(link->rings_.get());
  link->rings_memory_ = GYRE_TRY(Registered::add(rails, {rings, sizeof(Rings)}));
  link->unmatched_.reserve(ring_entries);
  link->credits_unsent_.reserve(ring_entries);
  link->sending_.reserve(ring_entries);
  return link;
}

Link::~Link() {
  break_off("the connection is being closed");
}

std::string Link::card() const {
  Card card{magic, reinterpret_cast<uint64_t>(rings_.get()), {}, static_cast<uint32_t>(paths_.size())};
  for (size_t rail = 0; rail < rails_.size(); ++rail) card.keys[rail] = rings_memory_->remote_key(rail);
  std::string bytes(reinterpret_cast<const char*>(&card), sizeof card);
  for (const auto& path : paths_) {
    const PairCard pair = path->card();
    bytes.append(reinterpret_cast<const char*>(&pair), sizeof pair);
  }
  return bytes;
}

unsigned poll(const Rail& rail) {
  std::array<ibv_wc, 16> completions;
  const int count = ibv_poll_cq(rail.completions(), static_cast<int>(completions.size()), completions.data());
  for (int i = 0; i < count; ++i) {
    const ibv_wc& completion = completions[static_cast<size_t>(i)];
    Path& path = *Path::path_of(completion.wr_id);
    path.link().complete(path, completion);
  }
  return count > 0 ? static_cast<unsigned>(count) : 0;
}

Status Link::join(std::string_view bytes) {
  Card card;
  if (bytes.size() < sizeof card) return Error{Code::remote, fmt::format("{} sent {} bytes to connect", peer_, bytes.size())};
  std::memcpy(&card, bytes.data(), sizeof card);
  if (card.magic != magic) return Error{Code::remote, fmt::format("{} does not speak this version of gyre's verbs", peer_)};
  if (card.paths != paths_.size() || bytes.size() != sizeof card + card.paths * sizeof(PairCard))
    return Error{Code::invalid_usage, fmt::format("{} has {} queue pairs for this connection, and this side {}: are the devices and "
                                                  "NCCL_IB_QPS_PER_CONNECTION the same?", peer_, card.paths, paths_.size())};
  peers_rings_ = card.rings;
  peers_keys_ = card.keys;
  for (size_t i = 0; i < paths_.size(); ++i) {
    PairCard pair;
    std::memcpy(&pair, bytes.data() + sizeof card + i * sizeof pair, sizeof pair);
    GYRE_TRY(paths_[i]->join(pair));
  }
  return {};
}

Request* Link::receive(uint64_t tag, std::span<std::byte> place, const Registered* memory) {
  if (failure_) [[unlikely]]
    return refuse();
  if (posted_count_ - oldest_ == ring_entries) return nullptr;
  Receiving* request = receives_.take();
  if (!request) return nullptr;
  const auto entry = static_cast<uint8_t>(posted_count_ % ring_entries);
  posted_[entry] = {request};
  Credit& credit = rings_->own[entry];
  credit.address = reinterpret_cast<uint64_t>(place.data());
  credit.bytes = place.size();
  credit.tag = tag;
  if (memory)
    for (size_t rail = 0; rail < rails_.size(); ++rail) credit.keys[rail] = memory->remote_key(rail);
  credit.sequence = ++posted_count_;
  if (unsent_ || !write_credit(entry)) [[unlikely]] {
    credits_unsent_.push_back(entry);
    unsent_ = true;
  }
  return request;
}

Path* Link::some_path() {
  const auto found = std::find_if(paths_.begin(), paths_.end(), [](const auto& path) { return path->alive(); });
  return found == paths_.end() ? nullptr : found->get();
}

size_t Link::alive() const {
  return static_cast<size_t>(std::count_if(paths_.begin(), paths_.end(), [](const auto& path) { return path->alive(); }));
}

bool Link::write_credit(uint8_t entry) {
  Path* path = some_path();
  if (!path || !path->has_room()) return false;
  const uint8_t rail = path->rail_number();
  const Path::Write write{&rings_->own[entry], sizeof(Credit), rings_memory_->local_key(rail),
                          peers_rings_ + offsetof(Rings, offered) + entry * sizeof(Credit), peers_keys_[rail]};
  const int error = path->write(write);
  if (error != 0) lose(*path, {Code::system, fmt::format("{} to {}: ibv_post_send: {}", path->rail().name(), peer_, errno_text(error))});
  return error == 0;
}

void Link::look_for_credits() {
  while (true) {
    Credit& next = rings_->offered[offered_ % ring_entries];
    if (std::atomic_ref(next.sequence).load(std::memory_order_acquire) != offered_ + 1) return;
    unmatched_.push_back(static_cast<uint8_t>(offered_++ % ring_entries));
  }
}

std::optional<uint8_t> Link::take_match(uint64_t tag) {
  const auto found = std::find_if(unmatched_.begin(), unmatched_.end(), [&](uint8_t entry) { return rings_->offered[entry].tag == tag; });
  if (found == unmatched_.end()) return std::nullopt;
  const uint8_t entry = *found;
  unmatched_.erase(found);
  return entry;
}

// A short message takes one path, in turn; a long one all, and as many pieces on each as its length needs. 0: a path has no room.
uint8_t Link::split(std::span<const std::byte> data) {
  const size_t all = alive();
  if (all == 0) return 0;
  const size_t used = data.size() < split_from ? 1 : all;
  const size_t share = ((data.size() + used - 1) / used + piece_alignment - 1) / piece_alignment * piece_alignment;
  uint8_t count = 0;
  size_t from = 0;
  for (size_t taken = 0; taken < used; next_path_ = (next_path_ + 1) % paths_.size()) {
    const Path& path = *paths_[next_path_];
    if (!path.alive()) continue;
    ++taken;
    size_t left = std::min(share, data.size() - from);
    do {
      if (!path.has_room() || count == max_pieces) return 0;
      const auto piece = static_cast<uint32_t>(std::min<size_t>(left, path.rail().max_piece()));
      pieces_[count++] = {data.data() + from, piece, path.index()};
      from += piece;
      left -= piece;
    } while (left > 0);
  }
  return count;
}

bool Link::write_piece(Sending& sending, uint8_t number) {
  const Piece& piece = sending.pieces[number];
  Path& path = *paths_[piece.path];
  if (!path.alive() || !path.has_room()) return false;
  const uint8_t rail = path.rail_number(), entry = static_cast<uint8_t>((sending.sequence - 1) % ring_entries);
  const Credit& credit = rings_->offered[entry];
  const Path::Write write{piece.data, piece.bytes, sending.memory ? sending.memory->local_key(rail) : 0,
                          credit.address + static_cast<uint64_t>(piece.data - sending.pieces[0].data), credit.keys[rail]};
  const int error = path.write(write, Immediate{false, sending.too_long, entry, number, sending.last}.bits(), &sending, number);
  if (error != 0) lose(path, {Code::system, fmt::format("{} to {}: ibv_post_send: {}", path.rail().name(), peer_, errno_text(error))});
  return error == 0;
}

Request* Link::send(uint64_t tag, std::span<const std::byte> data, const Registered* memory) {
  if (failure_) [[unlikely]]
    return refuse();
  look_for_credits();
  const uint8_t count = split(data);
  if (count == 0) return nullptr;
  Sending* request = sends_.take();
  if (!request) return nullptr;
  const auto entry = take_match(tag);
  if (!entry) {
    sends_.give(request);
    return nullptr;
  }
  const Credit& credit = rings_->offered[*entry];
  request->handle = request;  // which tells it from a receive
  request->bytes = data.size();
  request->memory = memory;
  request->sequence = credit.sequence;
  request->too_long = data.size() > credit.bytes;
  if (request->too_long) {
    request->failure = too_long;
    request->code = Code::invalid_argument;
    pieces_[0].bytes = 0;
  }
  const auto pieces = static_cast<uint8_t>(request->too_long ? 1 : count);
  request->last = static_cast<uint8_t>(pieces - 1);
  std::copy_n(pieces_.begin(), pieces, request->pieces.begin());
  request->under_way = static_cast<uint16_t>((1U << pieces) - 1);
  sending_.push_back(request);
  for (uint8_t i = 0; i < pieces && !failure_; ++i) {
    if (write_piece(*request, i)) continue;
    request->unsent |= static_cast<uint16_t>(1U << i);  // the path failed in this very call
    unsent_ = true;
  }
  return request;
}

void Link::release(Request* request) {
  if (request->handle)
    sends_.give(static_cast<Sending*>(request));
  else
    receives_.give(static_cast<Receiving*>(request));
}

void Link::acknowledged(Sending& sending, uint8_t piece) {
  sending.under_way &= static_cast<uint16_t>(~(1U << piece));
  if (sending.under_way != 0) return;
  sending.done = true;
  std::erase(sending_, &sending);
}

void Link::complete(Path& path, const ibv_wc& completion) {
  if (failure_) [[unlikely]]
    return;
  const bool received = Path::kind_of(completion.wr_id) == Path::Kind::receive;
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    if (received) (void)path.receive_done();
    const Error error{Code::remote, words(completion, path.rail().name(), peer_)};
    // Another path would not help where the memory is wrong.
    if (path.alive() && !is_of_path(completion.status)) return fail(error);
    lose(path, error);
    return recover();
  }
  if (!received) {
    const auto ended = path.send_done();
    if (ended.owner) acknowledged(*static_cast<Sending*>(ended.owner), ended.piece);
    return;
  }
  const auto immediate = Immediate::of(be32toh(completion.imm_data));
  if (const int error = path.receive_done(); error != 0) [[unlikely]]
    lose(path, {Code::system, fmt::format("{} to {}: ibv_post_recv: {}", path.rail().name(), peer_, errno_text(error))});
  if (immediate.mail) [[unlikely]]
    take_mail(path.index());
  else
    arrived(completion.byte_len, immediate);
  if (path.drained()) [[unlikely]]
    recover();
}

void Link::arrived(uint32_t bytes, Immediate immediate) {
  Posted& posted = posted_[immediate.entry];
  const auto bit = static_cast<uint16_t>(1U << immediate.piece);
  if (!posted.request || (posted.pieces & bit) != 0 || immediate.piece > immediate.last) [[unlikely]]
    return fail({Code::remote, fmt::format("{} sent piece {} of {} for receive {}, which does not wait for it", peer_, immediate.piece,
                                           immediate.last + 1, immediate.entry)});
  posted.pieces |= bit;
  posted.bytes += bytes;
  if (std::popcount(posted.pieces) <= immediate.last) return;
  Receiving& request = *posted.request;
  request.bytes = posted.bytes;
  if (immediate.too_long) {
    request.failure = too_long;
    request.code = Code::invalid_argument;
  }
  request.done = true;
  posted.request = nullptr;
  while (oldest_ < posted_count_ && !posted_[oldest_ % ring_entries].request) ++oldest_;
}

void Link::fail(Error error) {
  if (failure_) return;
  failure_ = std::move(error);
  end_all();
  if (on_failure_) on_failure_();
}

void Link::break_off(const char* reason) { fail({Code::remote, reason}); }

Request* Link::refuse() {
  Receiving* request = receives_.take();
  if (!request) return nullptr;
  request->failure = failure_->what.c_str();
  request->code = failure_->code;
  request->done = true;
  return request;
}

// Queue pairs in the error state touch nothing any more. They stay, since completions that were polled already name them.
void Link::end_all() {
  for (const auto& path : paths_) path->fail();
  const auto end = [&](Request& request) {
    request.failure = failure_->what.c_str();
    request.code = failure_->code;
    request.done = true;
  };
  for (Sending* sending : sending_) end(*sending);
  sending_.clear();
  for (Posted& posted : posted_)
    if (auto* request = std::exchange(posted.request, nullptr)) end(*request);
}

}  // namespace gyre::transport::verbs
