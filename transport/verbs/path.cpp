#include "transport/verbs/path.h"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "transport/verbs/wire.h"

namespace gyre::transport::verbs {
namespace {

constexpr uint32_t most_sends = 1024;
constexpr uint32_t most_receives = 2 * ring_entries;  // a piece of each receive under way, and those of the next before we have posted again
constexpr uint32_t wanted_inline = 220;
constexpr uint64_t unsignaled_in_a_row = 64;
constexpr uint32_t receives_at_once = 32;

}  // namespace

Result<std::unique_ptr<Path>> Path::open(Link& link, const Rail& opened, uint8_t rail, uint8_t index, uint8_t generation) {
  auto path = std::make_unique<Path>(link, opened, rail, index, generation);
  Rail::Limits limits{most_sends, most_receives, wanted_inline};
  path->pair_ = GYRE_TRY(opened.make_pair(limits));
  path->sends_ = limits.sends;
  path->receives_ = limits.receives;
  path->inlined_ = limits.inlined;
  path->signaled_.resize(limits.sends);
  return path;
}

Status Path::join(const PairCard& peer) {
  // Before the peer can send: a receive that is missing costs a pause.
  if (const int error = post_receives(receives_); error != 0)
    return Error{Code::system, fmt::format("{}: ibv_post_recv: {}", rail_.name(), errno_text(error))};
  return rail_.join(*pair_, peer);
}

int Path::write(const Write& what) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  return post(wr, what, posted_ + 1 - last_signaled_ >= unsignaled_in_a_row, {});
}

int Path::write(const Write& what, uint32_t immediate, Request* owner, uint8_t piece) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.imm_data = htobe32(immediate);
  return post(wr, what, true, {owner, piece});
}

int Path::post(ibv_send_wr& wr, const Write& what, bool signaled, Ended whose) {
  ibv_sge data{reinterpret_cast<uint64_t>(what.data), what.bytes, what.local_key};
  wr.wr_id = id(this, Kind::send);
  wr.sg_list = &data;
  wr.num_sge = what.bytes > 0 ? 1 : 0;
  if (signaled) wr.send_flags |= IBV_SEND_SIGNALED;
  if (goes_inline(what.bytes)) wr.send_flags |= IBV_SEND_INLINE;
  wr.wr.rdma.remote_addr = what.address;
  wr.wr.rdma.rkey = what.remote_key;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(pair_.get(), &wr, &bad);
  if (error != 0) [[unlikely]]
    return error;
  ++posted_;
  if (signaled) {
    last_signaled_ = posted_;
    signaled_[signaled_posted_++ % signaled_.size()] = {posted_, whose};
  }
  return 0;
}

Path::Ended Path::send_done() {
  const Signaled& oldest = signaled_[signaled_done_++ % signaled_.size()];
  done_ = oldest.posted;
  return oldest.what;
}

void Path::fail() {
  if (std::exchange(alive_, false)) (void)Rail::break_pair(*pair_);
}

int Path::receive_done() {
  --waiting_;
  if (!alive_ || ++consumed_ < receives_at_once) return 0;
  return post_receives(std::exchange(consumed_, 0));
}

int Path::post_receives(uint32_t count) {
  std::array<ibv_recv_wr, receives_at_once> chain{};
  while (count > 0) {
    const uint32_t length = std::min<uint32_t>(count, receives_at_once);
    for (uint32_t i = 0; i < length; ++i) {
      chain[i].wr_id = id(this, Kind::receive);
      chain[i].next = i + 1 < length ? &chain[i + 1] : nullptr;
    }
    ibv_recv_wr* bad = nullptr;
    if (const int error = ibv_post_recv(pair_.get(), chain.data(), &bad); error != 0) return error;
    waiting_ += length;
    count -= length;
  }
  return 0;
}

}  // namespace gyre::transport::verbs
