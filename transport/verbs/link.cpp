#include "transport/verbs/link.h"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "base/text.h"
#include "transport/verbs/words.h"

namespace gyre::transport::verbs {
namespace {

constexpr uint64_t split_from = 64 * 1024;  // below, a second path costs more than it brings
constexpr uint64_t piece_alignment = 128;
constexpr const char* too_long = "the message is longer than the receive";

struct Card {
  uint64_t magic = 0;
  uint64_t ring = 0;
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
  auto link = std::make_unique<Link>(std::move(peer));
  link->rails_.assign(rails.begin(), rails.end());
  for (uint32_t i = 0; i < paths_per_rail; ++i)
    for (size_t rail = 0; rail < rails.size(); ++rail)
      link->paths_.push_back(GYRE_TRY(Path::open(*link, *rails[rail], static_cast<uint8_t>(rail))));
  auto* rings = reinterpret_cast<std::byte*>(link->rings_.get());
  link->rings_memory_ = GYRE_TRY(Registered::add(rails, {rings, sizeof(Rings)}));
  link->unmatched_.reserve(ring_entries);
  link->sending_.reserve(2 * ring_entries);
  return link;
}

Link::~Link() {
  break_off("the connection is being closed");
}

std::string Link::card() const {
  Card card{magic, reinterpret_cast<uint64_t>(&rings_->offered), {}, static_cast<uint32_t>(paths_.size())};
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
  peers_ring_ = card.ring;
  peers_keys_ = card.keys;
  for (size_t i = 0; i < paths_.size(); ++i) {
    PairCard pair;
    std::memcpy(&pair, bytes.data() + sizeof card + i * sizeof pair, sizeof pair);
    GYRE_TRY(paths_[i]->join(pair));
  }
  return {};
}

Request* Link::receive(uint64_t tag, std::span<std::byte> place, const Registered* memory) {
  Path& path = *paths_.front();
  if (failure_) [[unlikely]]
    return refuse();
  if (posted_ - oldest_ == ring_entries || !path.has_room()) return nullptr;
  Moving* request = requests_.take();
  if (!request) return nullptr;
  const auto entry = static_cast<uint8_t>(posted_ % ring_entries);
  receives_[entry] = {request, ++posted_, 0, 0};
  Credit& credit = rings_->own[entry];
  credit.address = reinterpret_cast<uint64_t>(place.data());
  credit.bytes = place.size();
  credit.tag = tag;
  if (memory)
    for (size_t rail = 0; rail < rails_.size(); ++rail) credit.keys[rail] = memory->remote_key(rail);
  credit.sequence = posted_;
  const Path::Write write{&credit, sizeof credit, rings_memory_->local_key(path.number()), peers_ring_ + entry * sizeof credit,
                          peers_keys_[path.number()]};
  if (const int error = path.write(write); error != 0) [[unlikely]]
    fail({Code::system, fmt::format("{} to {}: ibv_post_send: {}", path.rail().name(), peer_, errno_text(error))});
  return request;
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
uint8_t Link::split(uint64_t bytes) {
  const size_t used = bytes < split_from ? 1 : paths_.size();
  const size_t first = used == 1 ? next_path_ % paths_.size() : 0;
  const uint64_t share = ((bytes + used - 1) / used + piece_alignment - 1) / piece_alignment * piece_alignment;
  uint8_t count = 0;
  uint64_t from = 0;
  for (size_t i = 0; i < used; ++i) {
    Path& path = *paths_[first + i];
    uint64_t left = std::min(share, bytes - from);
    do {
      if (!path.has_room() || count == max_pieces) return 0;
      const auto piece = static_cast<uint32_t>(std::min<uint64_t>(left, path.rail().max_piece()));
      pieces_[count++] = {&path, from, piece};
      from += piece;
      left -= piece;
    } while (left > 0);
  }
  next_path_ = first + 1;
  return count;
}

Request* Link::send(uint64_t tag, std::span<const std::byte> data, const Registered* memory) {
  if (failure_) [[unlikely]]
    return refuse();
  look_for_credits();
  const uint8_t count = split(data.size());
  if (count == 0) return nullptr;
  Moving* request = requests_.take();
  if (!request) return nullptr;
  const auto entry = take_match(tag);
  if (!entry) {
    requests_.give(request);
    return nullptr;
  }
  const Credit& credit = rings_->offered[*entry];
  const bool fits = data.size() <= credit.bytes;
  request->pieces = fits ? count : 1;
  sending_.push_back(request);
  if (!fits) {
    request->failure = too_long;
    request->code = Code::invalid_argument;
  }
  for (uint8_t i = 0; i < request->pieces; ++i) {
    const Piece& piece = pieces_[i];
    Path& path = *piece.path;
    const size_t rail = path.number();
    const Path::Write write{data.data() + piece.from, fits ? piece.bytes : 0, memory ? memory->local_key(rail) : 0, credit.address + piece.from,
                            credit.keys[rail]};
    const Immediate immediate{epoch_, *entry, !fits, i, static_cast<uint8_t>(request->pieces - 1)};
    if (const int error = path.write(write, immediate.bits(), request); error != 0) [[unlikely]] {
      fail({Code::system, fmt::format("{} to {}: ibv_post_send: {}", path.rail().name(), peer_, errno_text(error))});
      break;
    }
  }
  request->bytes = data.size();
  return request;
}

void Link::complete(Path& path, const ibv_wc& completion) {
  if (failure_) [[unlikely]]
    return;
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]]
    return fail({Code::remote, words(completion, path.rail().name(), peer_)});
  if (Path::kind_of(completion.wr_id) == Path::Kind::send) {
    auto* request = static_cast<Moving*>(path.send_done());
    if (!request || --request->pieces > 0) return;
    request->done = true;
    std::erase(sending_, request);
    return;
  }
  arrived(completion.byte_len, Immediate::of(be32toh(completion.imm_data)));
  if (const int error = path.receive_done(); error != 0) [[unlikely]]
    fail({Code::system, fmt::format("{} to {}: ibv_post_recv: {}", path.rail().name(), peer_, errno_text(error))});
}

void Link::arrived(uint32_t bytes, Immediate immediate) {
  if (immediate.epoch != epoch_) return;
  Posted& posted = receives_[immediate.entry];
  const uint64_t bit = uint64_t{1} << immediate.piece;
  if (!posted.request || (posted.pieces & bit) != 0 || immediate.piece > immediate.last) [[unlikely]]
    return fail({Code::remote, fmt::format("{} sent piece {} of {} for receive {}, which does not wait for it", peer_, immediate.piece,
                                           immediate.last + 1, immediate.entry)});
  posted.pieces |= bit;
  posted.bytes += bytes;
  if (std::popcount(posted.pieces) <= immediate.last) return;
  Moving& request = *posted.request;
  request.bytes = posted.bytes;
  if (immediate.too_long) {
    request.failure = too_long;
    request.code = Code::invalid_argument;
  }
  request.done = true;
  posted.request = nullptr;
  while (oldest_ < posted_ && !receives_[oldest_ % ring_entries].request) ++oldest_;
}

void Link::fail(Error error) {
  if (failure_) return;
  failure_ = std::move(error);
  end_all();
  if (on_failure_) on_failure_();
}

void Link::break_off(const char* reason) { fail({Code::remote, reason}); }

Request* Link::refuse() {
  Moving* request = requests_.take();
  if (!request) return nullptr;
  request->failure = failure_->what.c_str();
  request->code = failure_->code;
  request->done = true;
  return request;
}

// Queue pairs in the error state touch nothing any more. They stay, since completions that were polled already name them.
void Link::end_all() {
  for (const auto& path : paths_) (void)Rail::break_pair(path->pair());
  const auto end = [&](Moving*& request) {
    if (!request) return;
    request->failure = failure_->what.c_str();
    request->code = failure_->code;
    request->done = true;
    request = nullptr;
  };
  for (Moving*& request : sending_) end(request);
  sending_.clear();
  for (Posted& posted : receives_) end(posted.request);
}

}  // namespace gyre::transport::verbs
