#include "transport/slot_fifo.h"

namespace gyre::transport {

// What is still lent is taken back before its owner writes there again: a message that the peer has not looked at has not arrived then, and
// whoever is reading it sees that it is gone when he looks once more (engine/host_machine.h).
SlotFifo::~SlotFifo() {
  const uint64_t credits = out_.slots().credits;
  for (uint64_t number = completed() + 1; number <= sent_; ++number) {
    SlotLine& line = out_.line(static_cast<uint32_t>((number - 1) % credits));
    if (line.lent != 0) line.sequence.store(0, std::memory_order_relaxed);
  }
  std::atomic_thread_fence(std::memory_order_release);
}

bool SlotFifo::send_from(uint64_t plan, const std::byte* data, size_t bytes) {
  std::byte* slot = reserve(bytes);
  if (slot == nullptr) return false;
  const auto loan = lends() ? lender_.lend(data, bytes) : std::nullopt;
  if (loan) {
    std::memcpy(out_.line(out_slot_).inline_data, &*loan, sizeof *loan);
    std::byte* room = out_.room(out_slot_);
    const std::string_view news = lender_.news();
    std::memcpy(room, news.data(), news.size());
    room[news.size()] = std::byte{0};
  } else {
    std::memcpy(slot, data, bytes);
  }
  announce(plan, bytes, loan ? 1 : 0);
  return true;
}

// Null, and the failure is said, where it can't be read.
const std::byte* SlotFifo::borrowed(const SlotLine& line, size_t bytes) {
  if (failure_ == nullptr || *failure_) return nullptr;
  Loan loan;
  std::memcpy(&loan, line.inline_data, sizeof loan);
  const auto data = borrower_.at(loan, in_.room(in_slot_), bytes);
  if (data) return *data;
  *failure_ = Error{data.error().code, "shm: " + data.error().what};
  return nullptr;
}

}  // namespace gyre::transport
