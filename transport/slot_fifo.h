// A buffered connection over memory that both ends can see: per direction a ring of slots, one writer and one reader, no lock, no system
// call. The receiver works on the message where it lies. A message of up to 40 bytes travels in the same cache line as the flag that
// announces it, so that it costs one line transfer. A message of the sender's shared heap can be lent: the line says where it lies, and the
// receiver works on it there.
//
//   ring:  | consumed (64) | line 0 (64) | line 1 | … | page: slot 0 | slot 1 | … |
//   line:  | sequence | plan | bytes | lent | 40 bytes of a short message, or a loan |      slot of a loan: its segment's address
//
// The writer stores `sequence` = number of the message (from 1) last, with release; the reader stores `consumed` when it frees a slot.
#pragma once
#include <atomic>
#include <cstring>

#include "transport/doorbell.h"
#include "transport/loan.h"
#include "transport/transport.h"

namespace gyre::transport {

struct SlotLine {
  std::atomic<uint64_t> sequence;
  uint64_t plan;
  uint32_t bytes;
  uint32_t lent;
  std::byte inline_data[40];
};
static_assert(sizeof(Loan) == sizeof(SlotLine::inline_data));
static_assert(sizeof(SlotLine) == 64 && std::atomic<uint64_t>::is_always_lock_free);

/// One direction, laid over memory that starts as zeros and is aligned to a page.
class SlotRing {
 public:
  static constexpr size_t page = 4096;
  static size_t footprint(const Slots& slots) { return header(slots) + slots.credits * slots.bytes; }

  SlotRing(std::byte* memory, const Slots& slots)
      : consumed_(reinterpret_cast<std::atomic<uint64_t>*>(memory)),
        lines_(reinterpret_cast<SlotLine*>(memory + sizeof(SlotLine))),
        data_(memory + header(slots)),
        slots_(slots) {}

  std::atomic<uint64_t>& consumed() const { return *consumed_; }
  SlotLine& line(uint32_t slot) const { return lines_[slot]; }
  std::byte* data(uint32_t slot, size_t bytes) const {
    return bytes <= sizeof(SlotLine::inline_data) ? lines_[slot].inline_data : room(slot);
  }
  std::byte* room(uint32_t slot) const { return data_ + slot * slots_.bytes; }
  const Slots& slots() const { return slots_; }

 private:
  static size_t header(const Slots& slots) { return (sizeof(SlotLine) * (1 + slots.credits) + page - 1) / page * page; }

  std::atomic<uint64_t>* consumed_;
  SlotLine* lines_;
  std::byte* data_;
  Slots slots_;
};

class SlotFifo final : public Fifo {
 public:
  /// `failure`: where it is said that what the peer lends can't be read; null: nothing is lent.
  SlotFifo(SlotRing out, SlotRing in, std::optional<Error>* failure = nullptr) : out_(out), in_(in), failure_(failure) {}
  ~SlotFifo() override;
  SlotFifo(const SlotFifo&) = delete;
  SlotFifo& operator=(const SlotFifo&) = delete;
  bool lends() const override { return failure_ != nullptr && out_.slots().bytes >= most_address_bytes; }
  bool rings(const Ringer& peer) override {
    peer_ = peer;
    return true;
  }

  std::byte* reserve(size_t bytes) override {
    if (sent_ - known_consumed_ == out_.slots().credits) {
      known_consumed_ = out_.consumed().load(std::memory_order_acquire);
      if (sent_ - known_consumed_ == out_.slots().credits) return nullptr;
    }
    return out_.data(out_slot_, bytes);
  }
  void commit(uint64_t plan, size_t bytes) override { announce(plan, bytes, 0); }
  bool send_from(uint64_t plan, const std::byte* data, size_t bytes) override;
  uint64_t sent() const override { return sent_; }
  uint64_t completed() override { return known_consumed_ = out_.consumed().load(std::memory_order_acquire); }
  Arrival front() override {
    SlotLine& line = in_.line(in_slot_);
    if (line.sequence.load(std::memory_order_acquire) != popped_ + 1) return {};
    // The peer's memory is not trusted with our bounds.
    const size_t bytes = line.bytes <= in_.slots().bytes ? line.bytes : 0;
    if (line.lent != 0) return {borrowed(line, bytes), bytes, line.plan, true};
    return {in_.data(in_slot_, bytes), bytes, line.plan};
  }
  void pop() override {
    in_.consumed().store(++popped_, std::memory_order_release);
    peer_.ring();
    if (++in_slot_ == in_.slots().credits) in_slot_ = 0;
  }

 private:
  void announce(uint64_t plan, size_t bytes, uint32_t lent) {
    SlotLine& line = out_.line(out_slot_);
    line.plan = plan;
    line.bytes = static_cast<uint32_t>(bytes);
    line.lent = lent;
    line.sequence.store(++sent_, std::memory_order_release);
    peer_.ring();
    if (++out_slot_ == out_.slots().credits) out_slot_ = 0;
  }
  const std::byte* borrowed(const SlotLine&, size_t bytes);

  SlotRing out_;
  SlotRing in_;
  Ringer peer_;
  std::optional<Error>* failure_;
  Lender lender_;
  Borrower borrower_;
  uint64_t sent_ = 0;
  uint64_t known_consumed_ = 0;
  uint64_t popped_ = 0;
  uint32_t out_slot_ = 0;
  uint32_t in_slot_ = 0;
};

}  // namespace gyre::transport
