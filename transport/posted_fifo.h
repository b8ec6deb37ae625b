// A Fifo made of any posted Endpoint: messages are sends and receives whose tag is the plan's low 39 bits, so a message of another plan is
// never placed anywhere. Messages without user memory go through staging slots (one registered allocation). Credits come back in
// batches as tiny messages with bit 39 of the tag set, for which the sender keeps receives posted.
// It is owned by its endpoint, which must cancel its requests before this memory goes; it must not know which backend that is. Used by
// the worker's thread. Nothing is allocated after construction, failures aside.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "transport/transport.h"

namespace gyre::transport {

class PostedFifo final : public Fifo {
 public:
  using OnFailure = std::function<void(const Error&)>;

  /// Registers the slots and posts the receives for credits. What fails here is seen in failure(); `on_failure` is told the first failure.
  PostedFifo(Endpoint&, Worker&, Slots, OnFailure on_failure = {});

  bool posted() const override { return true; }
  bool direct() const override { return endpoint_.takes_any_memory(); }
  void admit(std::span<const std::byte> region, const Memory& memory) override { admitted_ = region, admitted_memory_ = &memory; }
  std::byte* reserve(size_t bytes) override;
  void commit(uint64_t plan, size_t bytes) override;
  bool send_from(uint64_t plan, const std::byte* data, size_t bytes) override;
  uint64_t sent() const override { return sent_; }
  uint64_t completed() override;
  bool expect(uint64_t plan, std::byte* destination, size_t bytes) override;
  Arrival front() override;
  void pop() override;

  /// Why this fifo can't go on, or null. Afterwards nothing is reserved, sent, announced or shown.
  const Error* failure() const { return failure_ ? &*failure_ : nullptr; }
  /// Messages that can always be under way: credits come back in batches, so a sender may be that many short.
  static uint32_t certain_credits(Slots slots) { return slots.credits - std::max(slots.credits / 2, 1U) + 1; }
  /// Requests of the endpoint that a fifo of these slots may have under way; a smaller pool only slows it down.
  static size_t requests_needed(Slots slots) { return 2 * size_t{slots.credits} + 2 * max_credit_messages; }
  /// What one end of a connection takes at the most.
  static size_t footprint(Slots slots) {
    return 2 * size_t{slots.credits} * stride(slots.bytes) + 2 * max_credit_messages * slot_alignment;
  }

 private:
  // `credits / batch` credit messages can be under way, which is 3 for 3 credits and 2 for more.
  static constexpr size_t max_credit_messages = 3;

  struct Outgoing {
    uint64_t tag = 0;
    const std::byte* data = nullptr;
    size_t bytes = 0;
    Request* request = nullptr;
  };
  struct Announced {
    uint64_t plan = 0;
    std::byte* data = nullptr;
    size_t bytes = 0;
    Request* request = nullptr;
  };
  struct CreditMessage {
    uint32_t* credits = nullptr;
    Request* request = nullptr;
  };
  struct AlignedDelete {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{slot_alignment}); }
  };
  static constexpr size_t slot_alignment = 64;
  static size_t stride(size_t slot_bytes) {
    return (std::max<size_t>(slot_bytes, 1) + slot_alignment - 1) / slot_alignment * slot_alignment;
  }

  bool may_send();
  void start(uint64_t plan, const std::byte* data, size_t bytes);
  void hand_over();
  void take_credits();
  void take_credit_message(CreditMessage&);
  void return_credits();
  void fail(std::string what);
  std::byte* out_slot(uint64_t message) { return slots_.get() + (message % credits_) * stride_; }
  const Memory* memory_of(const std::byte* data) const {
    if (data >= slots_.get() && data < slots_.get() + total_) return memory_.get();
    return data >= admitted_.data() && data < admitted_.data() + admitted_.size() ? admitted_memory_ : nullptr;
  }
  std::byte* in_slot(uint64_t message) { return slots_.get() + (credits_ + message % credits_) * stride_; }

  Endpoint& endpoint_;
  OnFailure on_failure_;
  const uint32_t credits_, batch_;
  const size_t slot_bytes_, stride_;
  size_t total_ = 0;
  std::unique_ptr<std::byte, AlignedDelete> slots_;  // outgoing, then incoming, then the credit messages
  std::unique_ptr<Memory> memory_;
  std::span<const std::byte> admitted_;
  const Memory* admitted_memory_ = nullptr;

  std::vector<Outgoing> outgoing_;  // rings: message i is at i % credits
  std::vector<Announced> announced_;
  // completed <= handed <= sent: handed is behind sent while the endpoint has no request to give. returned: credits that came back.
  uint64_t sent_ = 0, handed_ = 0, completed_ = 0, returned_ = 0;
  uint64_t expected_ = 0, popped_ = 0;
  uint32_t owed_ = 0;  // popped, not yet returned

  std::vector<CreditMessage> credits_in_;
  std::vector<CreditMessage> credits_out_;
  const char* credits_lost_ = nullptr;
  std::optional<Error> failure_;
};

}  // namespace gyre::transport
