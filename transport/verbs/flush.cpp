#include "transport/verbs/flush.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "transport/verbs/words.h"

namespace gyre::transport::verbs {
namespace {

constexpr const char* purpose = "itself, to flush GPU memory";

/// The rail can't read any more, whatever the memory is like.
bool lost_its_way(ibv_wc_status status) {
  return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_WR_FLUSH_ERR || status == IBV_WC_RESP_TIMEOUT_ERR ||
         status == IBV_WC_FATAL_ERR || status == IBV_WC_GENERAL_ERR;
}

}  // namespace

Status Flushes::make(Loop& loop, const Rail& rail) {
  loop.pair.reset();
  loop.broken = false;
  if (!loop.queue) loop.queue = GYRE_TRY(rail.make_queue(capacity));
  const std::span target(reinterpret_cast<std::byte*>(target_.data()), sizeof target_);
  if (!loop.target) loop.target = GYRE_TRY(register_range(rail, {target}));
  Rail::Limits limits{capacity, 1, 0};
  auto pair = GYRE_TRY(rail.make_pair_on(loop.queue.get(), limits));
  if (limits.sends < capacity)
    return Error{Code::system,
                 fmt::format("{}: {} sends of a queue pair are too few for flushes of GPU memory", rail.name(), limits.sends)};
  GYRE_TRY(rail.join(*pair, rail.card(*pair)));
  loop.pair = std::move(pair);
  return {};
}

Status Flushes::read(size_t number, const Registered& memory, const std::byte* data, uint64_t flush) {
  const Rail& rail = *rails_[number];
  Loop& loop = loops_[number];
  if (!loop.pair || loop.broken) GYRE_TRY(make(loop, rail));
  const auto left = static_cast<size_t>(memory.bytes().data() + memory.bytes().size() - data);
  ibv_sge place{reinterpret_cast<uint64_t>(target_.data()), static_cast<uint32_t>(std::min(sizeof target_, left)), loop.target->lkey};
  ibv_send_wr wr{};
  wr.wr_id = flush;
  wr.sg_list = &place;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_READ;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(data);
  wr.wr.rdma.rkey = memory.remote_key(number);
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(loop.pair.get(), &wr, &bad); error != 0)
    return Error{Code::system, fmt::format("{} to {}: ibv_post_send: {}", rail.name(), purpose, errno_text(error))};
  ++loop.reading;
  ++under_way_;
  return {};
}

Result<Request*> Flushes::start(const Registered& memory, const std::byte* data) {
  if (data < memory.bytes().data() || data >= memory.bytes().data() + memory.bytes().size())
    return Error{Code::invalid_argument, fmt::format("{} to be flushed lies outside of its registration", static_cast<const void*>(data))};
  if (flushes_.empty()) {
    flushes_.resize(capacity);
    loops_.resize(rails_.size());
  }
  const auto unused =
      std::find_if(flushes_.begin(), flushes_.end(), [](const Flush& flush) { return !flush.in_use && flush.reading == 0; });
  if (unused == flushes_.end()) return Error{Code::internal, fmt::format("{} flushes of GPU memory are under way", flushes_.size())};
  Flush& flush = *unused;
  flush = {};
  flush.code = Code::system;
  for (size_t i = 0; i < rails_.size(); ++i) {
    // What is left of a broken queue pair is still to come, and comes at once.
    if (!rails_[i]->up() || (loops_[i].broken && loops_[i].reading > 0)) continue;
    auto begun = read(i, memory, data, static_cast<uint64_t>(unused - flushes_.begin()));
    if (begun) {
      flush.reading |= static_cast<uint8_t>(1U << i);
      continue;
    }
    if (flush.reading == 0) return begun.error();
    flush.why = begun.error().what;
    flush.failure = flush.why.c_str();
  }
  if (flush.reading == 0) return Error{Code::system, "GPU memory can't be flushed: no port is up"};
  flush.in_use = true;
  return &flush;
}

void Flushes::ended(Loop& loop, const Rail& rail, const ibv_wc& completion) {
  Flush& flush = flushes_[completion.wr_id];
  flush.reading &= static_cast<uint8_t>(~(1U << static_cast<size_t>(&loop - loops_.data())));
  --loop.reading;
  --under_way_;
  flush.read |= completion.status == IBV_WC_SUCCESS;
  if (completion.status != IBV_WC_SUCCESS) {
    loop.broken = true;
    if (flush.why.empty()) flush.why = words(completion, rail.name(), purpose);
    if (!lost_its_way(completion.status)) flush.failure = flush.why.c_str();
  }
  if (flush.reading != 0) return;
  if (!flush.read) flush.failure = flush.why.c_str();
  flush.done = true;
}

unsigned Flushes::read_completions() {
  unsigned count = 0;
  for (size_t i = 0; i < loops_.size() && under_way_ > 0; ++i) {
    Loop& loop = loops_[i];
    if (loop.reading == 0) continue;
    // A port that is down may not answer even itself, and would say so after all retries only.
    if (!rails_[i]->up() && !std::exchange(loop.broken, true)) (void)Rail::break_pair(*loop.pair);
    std::array<ibv_wc, 16> completions;
    const int got = ibv_poll_cq(loop.queue.get(), static_cast<int>(completions.size()), completions.data());
    for (int j = 0; j < got; ++j) ended(loop, *rails_[i], completions[static_cast<size_t>(j)]);
    count += got > 0 ? static_cast<unsigned>(got) : 0;
  }
  return count;
}

void Flushes::release(Request* request) { static_cast<Flush*>(request)->in_use = false; }

}  // namespace gyre::transport::verbs
