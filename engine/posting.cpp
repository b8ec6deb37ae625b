#include "engine/posting.h"

#include <algorithm>

namespace gyre::engine {

Posting::Posting(std::span<transport::Fifo* const> fifos) : fifos_(fifos.begin(), fifos.end()) {
  for (const transport::Fifo* fifo : fifos_) needed_ = needed_ || (fifo != nullptr && fifo->posted());
  holds_.reserve(fifos_.size() * 256);  // GYRE_SLOTS at its most
}

void Posting::bind(const Plan& plan, const schedule::Program& program, uint64_t word, std::span<std::byte* const> buffers, bool in_place) {
  announcer_.bind(program, {plan.schedule().layout(), plan.schedule().scratch, in_place}, plan.slices(), plan.rounds());
  plan_ = &plan;
  facts_ = plan.proof().facts[static_cast<size_t>(&program - plan.schedule().programs.data())].data();
  word_ = word;
  buffers_ = buffers;
}

bool Posting::expect(Rank peer, const schedule::Step& step, const schedule::Position& at) {
  size_t total = 0;
  for (uint32_t i = 0; i < step.flow().count; ++i) total += piece(step.flow()[i], at).count;
  total *= plan_->width(facts_[at.cursor.step].arrived);
  transport::Fifo& fifo = *fifos_[static_cast<size_t>(peer)];
  const bool in_place = fifo.direct() && schedule::lands(step);
  return fifo.expect(word_, in_place ? address(step.dst.buffer, piece(step.dst.first, at)) : nullptr, total);
}

bool Posting::held(const schedule::Chunks& dst, const schedule::Position& at) {
  for (uint32_t i = 0; i < dst.count; ++i) {
    const Piece p = piece(dst[i], at);
    if (held(address(dst.buffer, p), p.count * plan_->width(dst.buffer))) return true;
  }
  return false;
}

void Posting::hold(transport::Fifo& fifo, const std::byte* data, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  if (bytes != 0) holds_.push_back({&fifo, fifo.sent(), begin, begin + bytes});
}

bool Posting::held(const std::byte* data, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  std::erase_if(holds_, [](const Hold& hold) { return hold.fifo->completed() >= hold.number; });
  return std::any_of(holds_.begin(), holds_.end(), [&](const Hold& hold) { return hold.begin < begin + bytes && begin < hold.end; });
}

bool Posting::idle() {
  return std::all_of(fifos_.begin(), fifos_.end(),
                     [](transport::Fifo* fifo) { return fifo == nullptr || !fifo->posted() || fifo->completed() == fifo->sent(); });
}

}  // namespace gyre::engine
