#include "transport/verbs/link.h"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "transport/verbs/words.h"

namespace gyre::transport::verbs {
namespace {

/// Failures of a way to the peer, not of what is sent on it.
bool is_of_path(ibv_wc_status status) {
  return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR || status == IBV_WC_RESP_TIMEOUT_ERR ||
         status == IBV_WC_WR_FLUSH_ERR || status == IBV_WC_FATAL_ERR || status == IBV_WC_GENERAL_ERR || status == IBV_WC_REM_INV_REQ_ERR ||
         status == IBV_WC_REM_OP_ERR || status == IBV_WC_LOC_QP_OP_ERR;
}

struct Card {
  uint64_t magic = 0;
  uint64_t rings = 0;
  std::array<uint32_t, max_rails> keys{};
  uint32_t paths = 0, unused = 0;
};
constexpr uint64_t card_magic = 0x3176'6562'7265'7967;  // "gyrebev1", as bytes

}  // namespace

Path::Place Link::place_of(size_t path) const {
  const size_t rail = path % rails_.size(), count = paths_.size();
  return {static_cast<uint8_t>(path), static_cast<uint8_t>(rail), static_cast<uint8_t>(path % shape_.peers_rails),
          static_cast<uint8_t>(count / rails_.size() + (rail < count % rails_.size() ? 1 : 0))};
}

Result<std::unique_ptr<Link>> Link::open(std::span<Rail* const> rails, Shape shape, std::string peer) {
  const size_t ports = std::max<size_t>(rails.size(), shape.peers_rails), count = ports * shape.pairs;
  if (shape.peers_rails == 0 || shape.peers_rails > max_rails || shape.pairs == 0 || count > max_paths)
    return Error{Code::invalid_argument, fmt::format("{} queue pairs on each of {} ports are not 1 to {}, on at most {} ports", shape.pairs,
                                                     ports, max_paths, max_rails)};
  auto link = std::make_unique<Link>(std::move(peer), shape);
  link->rails_.assign(rails.begin(), rails.end());
  link->paths_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const auto place = link->place_of(i);
    link->paths_[i] = GYRE_TRY(Path::open(*link, *rails[place.rail], place, 1));
  }
  auto* rings = reinterpret_cast<std::byte*>(link->rings_.get());
  link->rings_memory_ = GYRE_TRY(Registered::add(rails, {rings, sizeof(Rings)}));
  for (auto* reserved : {&link->unmatched_, &link->credits_unsent_}) reserved->reserve(ring_entries);
  link->carrying_.reserve(count);
  return link;
}

Link::~Link() { break_off("the connection is being closed"); }

std::string Link::card() const {
  Card card{card_magic, reinterpret_cast<uint64_t>(rings_.get()), {}, static_cast<uint32_t>(paths_.size())};
  for (size_t rail = 0; rail < rails_.size(); ++rail) card.keys[rail] = rings_memory_->remote_key(rail);
  std::string bytes(reinterpret_cast<const char*>(&card), sizeof card);
  for (const auto& path : paths_) {
    const PairCard pair = path->card();
    bytes.append(reinterpret_cast<const char*>(&pair), sizeof pair);
  }
  return bytes;
}

Status Link::join(std::string_view bytes) {
  Card card;
  if (bytes.size() < sizeof card) return Error{Code::remote, fmt::format("{} sent {} bytes to connect", peer_, bytes.size())};
  std::memcpy(&card, bytes.data(), sizeof card);
  if (card.magic != card_magic) return Error{Code::remote, fmt::format("{} does not speak this version of gyre's verbs", peer_)};
  if (card.paths != paths_.size() || bytes.size() != sizeof card + card.paths * sizeof(PairCard))
    return Error{Code::remote,
                 fmt::format("{} has {} queue pairs for this connection, and this side {}", peer_, card.paths, paths_.size())};
  peers_rings_ = card.rings;
  peers_keys_ = card.keys;
  std::vector<std::pair<Path*, Error>> failed;
  for (size_t i = 0; i < paths_.size(); ++i) {
    PairCard pair;
    std::memcpy(&pair, bytes.data() + sizeof card + i * sizeof pair, sizeof pair);
    if (auto joined = paths_[i]->join(pair); !joined) failed.emplace_back(paths_[i].get(), std::move(joined).error());
  }
  if (!trying()) return failed.front().second;
  for (const auto& [path, why] : failed) {
    log::warn("a path of {} to {} can't be joined: {}", paths_.size(), peer_, why.what);
    lose(*path, why);
  }
  return {};
}

void Link::try_paths() {
  for (const auto& path : paths_)
    if (path->state() == Path::State::joined && path->quiet()) probe(*path);
}

bool Link::ready() const {
  const bool asked = std::none_of(paths_.begin(), paths_.end(), [](const auto& path) {
    return path->generation() == 1 && (path->state() == Path::State::offered || path->state() == Path::State::joined);
  });
  return asked && !failure_ && (alive() > 0 || has_detour());
}

bool Link::trying() const {
  return std::any_of(paths_.begin(), paths_.end(), [](const auto& path) { return path->state() == Path::State::joined; });
}

void Link::count_paths() {
  carrying_.clear();
  for (const bool first : {true, false}) {
    for (const auto& path : paths_)
      if (path->alive() && (&path->rail() == rails_[shape_.first]) == first) carrying_.push_back(path.get());
  }
  only_ = carrying_.size() == 1 ? carrying_.front() : nullptr;
  mbit_per_s_ =
      std::accumulate(carrying_.begin(), carrying_.end(), uint64_t{0}, [](uint64_t sum, Path* path) { return sum + path->mbit_per_s(); });
  load_.fill(0);
}

[[gnu::always_inline]] inline void Link::sent(Path& path) {
  const auto ended = path.send_done();
  if (ended.owner) return acknowledged(*static_cast<Sending*>(ended.owner), ended.piece);
  if (path.state() == Path::State::joined) probe_done(path);
}

[[gnu::always_inline]] inline void Link::complete(Path& path, const ibv_wc& completion) {
  const bool sends = static_cast<Path::Kind>(completion.wr_id & 7U) == Path::Kind::send;
  if (sends && completion.status == IBV_WC_SUCCESS && path.alive()) [[likely]]  // so that the link is, too
    sent(path);
  else
    take(path, completion);
}

unsigned poll(std::span<Rail* const> rails) {
  std::array<ibv_wc, 16> completions;
  unsigned all = 0;
  for (const Rail* rail : rails) {
    for (size_t i = 0; ibv_cq* queue = rail->completions(i); ++i) {
      const int count = ibv_poll_cq(queue, static_cast<int>(completions.size()), completions.data());
      if (count <= 0) continue;
      for (const ibv_wc& completion : std::span(completions).first(static_cast<size_t>(count)))
        if (Path* path = rail->find(completion.wr_id)) path->link().complete(*path, completion);
      all += static_cast<unsigned>(count);
    }
  }
  return all;
}

void Link::take(Path& path, const ibv_wc& completion) {
  if (failure_) [[unlikely]]
    return;
  const bool was_receive = static_cast<Path::Kind>(completion.wr_id & 7U) == Path::Kind::receive;
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    if (was_receive) (void)path.receive_done();
    const Error error{Code::remote, words(completion, path.rail().name(), peer_)};
    // Another path would not help where the memory is wrong.
    if (path.state() != Path::State::failed && !is_of_path(completion.status)) return fail(error);
    lose(path, error);
    return recover();
  }
  // What it had under way is another path's: the peer was told so, and may be sending it again.
  if (path.out()) [[unlikely]]
    return;
  if (!was_receive) return sent(path);
  const auto immediate = Immediate::of(be32toh(completion.imm_data));
  const uint8_t index = path.index();  // the path itself may be replaced
  (void)posted(path, path.receive_done(), "ibv_post_recv");
  if (immediate.mail) [[unlikely]]
    take_mail(Mail(rings_->mails[index]));
  else if (immediate.confirms)
    confirmed(immediate);
  else
    arrived(completion.byte_len, immediate);
  if (paths_[index]->out()) [[unlikely]]
    recover();
}

void Link::post_failed(Path& path, int error, const char* call) {
  lose(path, {Code::system, fmt::format("{} to {}: {}: {}", path.rail().name(), peer_, call, errno_text(error))});
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

// Queue pairs in the error state touch nothing any more.
void Link::end_all() {
  for (const auto& path : paths_)
    if (path) path->fail();
  carrying_.clear();
  only_ = nullptr;
  if (detour_) detour_->endpoint().break_off("the connection has ended");
  const auto end = [&](Request& request) {
    request.failure = failure_->what.c_str();
    request.code = failure_->code;
    request.done = true;
  };
  for (Sending& sending : sending_) end(sending);
  sending_.clear();
  for (Posted& posted : posted_)
    if (auto* request = std::exchange(posted.request, nullptr)) end(*request);
}

}  // namespace gyre::transport::verbs
