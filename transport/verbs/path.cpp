#include "transport/verbs/path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/text.h"
#include "transport/verbs/wire.h"

namespace gyre::transport::verbs {
namespace {

constexpr uint32_t most_sends = 1024;
constexpr uint32_t most_receives =
    2 * ring_entries;  // a piece of each receive under way, and those of the next before we have posted again
constexpr uint32_t wanted_inline = 220;
constexpr uint32_t receives_at_once = 32;
constexpr uint32_t most_unsignaled = 64;  // in a row

}  // namespace

Result<std::unique_ptr<Path>> Path::open(Link& link, Rail& rail, Place place, uint32_t generation) {
  auto path = std::make_unique<Path>(link, rail, place, generation);
  Rail::Limits limits{most_sends, most_receives, wanted_inline};
  auto made = GYRE_TRY(rail.make_pair(path.get(), limits));
  path->pair_ = std::move(made.pair);
  path->name_ = made.name;
  path->sends_ = limits.sends;
  path->receives_ = limits.receives;
  path->inlined_ = limits.inlined;
  path->longest_ = rail.max_piece();
  path->spread_above_ = rail.adaptive_routing() ? rail.options().adaptive_threshold : UINT32_MAX;
  path->signaled_.resize(std::bit_ceil(limits.sends));
  path->signaled_each_ = std::max(std::min(limits.sends / 2, most_unsignaled), 1U);
  path->signaled_mask_ = static_cast<uint32_t>(path->signaled_.size() - 1);
  path->work_.wr_id = path->id(Kind::send);
  path->work_.sg_list = &path->data_;
  return path;
}

Path::~Path() {
  if (!pair_) return;
  pair_.reset();
  rail_.forget(name_);
}

PairCard Path::card() const {
  PairCard card = rail_.card(*pair_);
  card.mbit_per_s /= place_.sharing;
  return card;
}

Status Path::join(const PairCard& peer) {
  mbit_per_s_ = std::max(std::min(peer.mbit_per_s, card().mbit_per_s), 1U);
  // Before the peer can send: a receive that is missing costs a pause.
  if (const int error = post_receives(receives_); error != 0)
    return Error{Code::system, fmt::format("{}: ibv_post_recv: {}", rail_.name(), errno_text(error))};
  GYRE_TRY(rail_.join(*pair_, peer));
  state_ = State::joined;
  return {};
}

void Path::fail() {
  if (std::exchange(state_, State::failed) != State::failed) (void)Rail::break_pair(*pair_);
}

int Path::receive_done() {
  --waiting_;
  if (state_ == State::failed || ++consumed_ < receives_at_once) return 0;
  return post_receives(std::exchange(consumed_, 0));
}

int Path::post_receives(uint32_t count) {
  std::array<ibv_recv_wr, receives_at_once> chain{};
  while (count > 0) {
    const uint32_t length = std::min<uint32_t>(count, receives_at_once);
    for (uint32_t i = 0; i < length; ++i) {
      chain[i].wr_id = id(Kind::receive);
      chain[i].next = i + 1 < length ? &chain[i + 1] : nullptr;
    }
    ibv_recv_wr* bad = nullptr;
    if (const int error = ibv_post_recv(pair_.get(), chain.data(), &bad); error != 0) {
      if (bad) waiting_ += static_cast<uint32_t>(bad - chain.data());  // those before it wait
      return error;
    }
    waiting_ += length;
    count -= length;
  }
  return 0;
}

}  // namespace gyre::transport::verbs
