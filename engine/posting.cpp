#include "engine/posting.h"

#include <algorithm>

namespace gyre::engine {
namespace {

bool has_unread(transport::Fifo* fifo) { return fifo != nullptr && fifo->posted() && fifo->completed() != fifo->sent(); }

}  // namespace

Posting::Posting(std::span<transport::Fifo* const> fifos) : fifos_(fifos.begin(), fifos.end()) {
  for (const transport::Fifo* fifo : fifos_) {
    if (fifo == nullptr) continue;
    posts_ = posts_ || fifo->posted();
    can_lend_ = can_lend_ || fifo->lends();
  }
  holds_.reserve(fifos_.size() * 256);  // GYRE_SLOTS at its most
}

void Posting::bind(const Plan& plan, const schedule::Program& program, uint64_t word, std::span<std::byte* const> buffers, bool in_place,
                   bool lending) {
  lending_ = lending;
  holds_.clear();
  if (!needed()) return;
  if (posts_) announcer_.bind(program, {plan.schedule().layout(), plan.schedule().scratch, in_place}, plan.slices(), plan.rounds());
  plan_ = &plan;
  facts_ = plan.proof().facts[static_cast<size_t>(&program - plan.schedule().programs.data())].data();
  word_ = word;
  buffers_ = buffers;
}

bool Posting::expect(Rank peer, const schedule::Step& step, const schedule::Position& at) {
  size_t total = 0;
  for (uint32_t i = 0; i < step.flow().count; ++i) total += piece(step.flow()[i], at).count;
  total *= plan_->width(facts_[at.cursor.step].arrived);
  const bool in_place = fifo(peer).direct() && schedule::lands(step);
  return fifo(peer).expect(word_, in_place ? address(step.dst.buffer, piece(step.dst.first, at)) : nullptr, total);
}

Rank Posting::reader(const schedule::Chunks& chunks, const schedule::Position& at) {
  for (uint32_t i = 0; i < chunks.count; ++i) {
    const Piece p = piece(chunks[i], at);
    const Rank peer = reader(address(chunks.buffer, p), p.count * plan_->width(chunks.buffer));
    if (peer >= 0) return peer;
  }
  return -1;
}

void Posting::hold(Rank peer, const std::byte* data, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  if (holds_.size() == holds_.capacity()) forget_completed();
  if (bytes != 0) holds_.push_back({peer, fifo(peer).sent(), begin, begin + bytes});
}

void Posting::forget_completed() {
  std::erase_if(holds_, [&](const Hold& hold) { return fifo(hold.peer).completed() >= hold.number; });
}

Rank Posting::reader(const std::byte* data, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  forget_completed();
  const auto found =
      std::find_if(holds_.begin(), holds_.end(), [&](const Hold& hold) { return hold.begin < begin + bytes && begin < hold.end; });
  return found == holds_.end() ? -1 : found->peer;
}

bool Posting::idle() {
  forget_completed();
  return holds_.empty() && std::none_of(fifos_.begin(), fifos_.end(), has_unread);
}

std::vector<Rank> Posting::readers() const {
  std::vector<Rank> peers;
  for (size_t peer = 0; peer < fifos_.size(); ++peer) {
    const auto of_peer = [&](const Hold& hold) { return hold.peer == static_cast<Rank>(peer); };
    if (has_unread(fifos_[peer]) || std::any_of(holds_.begin(), holds_.end(), of_peer)) peers.push_back(static_cast<Rank>(peer));
  }
  return peers;
}

}  // namespace gyre::engine
