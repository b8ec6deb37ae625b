#include "transport/posted_fifo.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gyre::transport {
namespace {

constexpr uint64_t credit_tag = uint64_t{1} << 39;

constexpr uint64_t data_tag(uint64_t plan) { return plan & (credit_tag - 1); }

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

PostedFifo::PostedFifo(Endpoint& endpoint, Worker& worker, Slots slots, OnFailure on_failure)
    : endpoint_(endpoint),
      on_failure_(std::move(on_failure)),
      credits_(std::max(slots.credits, 1u)),
      batch_(std::max(credits_ / 2, 1u)),
      slot_bytes_(slots.bytes),
      stride_(stride(slots.bytes)),
      outgoing_(credits_),
      announced_(credits_),
      credits_in_(credits_ / batch_),
      credits_out_(credits_ / batch_) {
  const size_t all_slots = 2 * size_t{credits_} * stride_;
  total_ = all_slots + (credits_in_.size() + credits_out_.size()) * slot_alignment;
  slots_.reset(static_cast<std::byte*>(::operator new (total_, std::align_val_t{slot_alignment})));
  std::byte* next = slots_.get() + all_slots;
  for (auto* messages : {&credits_in_, &credits_out_})
    for (auto& message : *messages) message.credits = new (std::exchange(next, next + slot_alignment)) uint32_t{0};
  auto memory = worker.register_memory({slots_.get(), total_});
  if (memory) {
    memory_ = *std::move(memory);
    take_credits();  // posts the receives
  } else {
    fail(memory.error().what);
  }
}

void PostedFifo::fail(std::string what) {
  if (failure_) return;
  failure_.emplace(Code::remote, std::move(what));
  if (on_failure_) on_failure_(*failure_);
}

std::byte* PostedFifo::reserve(size_t bytes) {
  if (bytes > slot_bytes_) fail(fmt::format("a message of {} bytes does not fit a slot of {}", bytes, slot_bytes_));
  return may_send() ? out_slot(sent_) : nullptr;
}

void PostedFifo::commit(uint64_t plan, size_t bytes) { start(plan, out_slot(sent_), bytes); }

bool PostedFifo::send_from(uint64_t plan, const std::byte* data, size_t bytes) {
  if (!may_send()) return false;
  start(plan, data, bytes);
  return true;
}

bool PostedFifo::may_send() {
  if (failure_) [[unlikely]]
    return false;
  if (handed_ < sent_) hand_over();
  // A credit may be back before the completion of its send was seen, and a slot and its request are free only after both.
  if (sent_ - completed_ == credits_ && sent_ - completed() == credits_) return false;
  if (sent_ - returned_ < credits_) return true;
  take_credits();
  if (sent_ - returned_ < credits_) return !failure_;
  if (credits_lost_) [[unlikely]]
    fail(fmt::format("no credit will come back: {}", credits_lost_));
  return false;
}

void PostedFifo::start(uint64_t plan, const std::byte* data, size_t bytes) {
  outgoing_[sent_ % credits_] = {data_tag(plan), data, bytes, nullptr};
  ++sent_;
  hand_over();
}

// Gives the endpoint, in order, what it had no request for before.
void PostedFifo::hand_over() {
  for (; handed_ < sent_; ++handed_) {
    auto& message = outgoing_[handed_ % credits_];
    message.request = endpoint_.send(message.tag, {message.data, message.bytes}, memory_of(message.data));
    if (!message.request) return;
  }
}

uint64_t PostedFifo::completed() {
  if (handed_ < sent_) hand_over();
  for (; completed_ < handed_; ++completed_) {
    Request* request = outgoing_[completed_ % credits_].request;
    if (!request->done) break;
    if (request->failure) [[unlikely]] {
      fail(fmt::format("sending message {} of {} bytes: {}", completed_, outgoing_[completed_ % credits_].bytes, request->failure));
      break;
    }
    endpoint_.release(request);
  }
  return completed_;
}

bool PostedFifo::expect(uint64_t plan, std::byte* destination, size_t bytes) {
  if (!destination && bytes > slot_bytes_) fail(fmt::format("a message of {} bytes does not fit a slot of {}", bytes, slot_bytes_));
  if (failure_ || expected_ - popped_ == credits_) return false;
  std::byte* data = destination ? destination : in_slot(expected_);
  Request* request = endpoint_.receive(data_tag(plan), {data, bytes}, memory_of(data));
  if (!request) return false;
  announced_[expected_ % credits_] = {plan, data, bytes, request};
  ++expected_;
  return true;
}

Arrival PostedFifo::front() {
  if (handed_ < sent_) hand_over();
  if (owed_ >= batch_) return_credits();
  if (popped_ == expected_ || failure_) return {};
  const auto& message = announced_[popped_ % credits_];
  const Request& request = *message.request;
  if (!request.done) return {};
  if (request.failure) [[unlikely]] {
    fail(fmt::format("receiving message {} of {} bytes: {}", popped_, message.bytes, request.failure));
    return {};
  }
  if (request.bytes != message.bytes) [[unlikely]] {
    fail(fmt::format("message {} has {} bytes, {} were announced", popped_, request.bytes, message.bytes));
    return {};
  }
  return {message.data, message.bytes, message.plan};
}

void PostedFifo::pop() {
  endpoint_.release(announced_[popped_ % credits_].request);
  ++popped_;
  ++owed_;
  if (owed_ >= batch_) return_credits();
}

// The counts add up in any order, so the receives need not be looked at in the order in which they were posted.
void PostedFifo::take_credits() {
  for (auto& message : credits_in_) {
    if (message.request && message.request->done) take_credit_message(message);
    if (!message.request) message.request = endpoint_.receive(credit_tag, bytes_of(*message.credits), memory_.get());
  }
}

void PostedFifo::take_credit_message(CreditMessage& message) {
  if (message.request->failure) {
    // Not yet a failure: a peer that has all our messages may close. It is one when a credit is missing.
    credits_lost_ = message.request->failure;
    return;
  }
  if (message.request->bytes != sizeof *message.credits || *message.credits > sent_ - returned_) [[unlikely]]
    return fail(fmt::format("{} credits came back in {} bytes, {} are out", *message.credits, message.request->bytes, sent_ - returned_));
  returned_ += *message.credits;
  endpoint_.release(message.request);
  message.request = nullptr;
}

void PostedFifo::return_credits() {
  for (auto& message : credits_out_) {
    if (message.request && message.request->done) {
      // A failure is left aside: a peer that wants no more credits may have closed; a broken connection shows in the data.
      endpoint_.release(message.request);
      message.request = nullptr;
    }
    if (message.request || owed_ < batch_) continue;
    *message.credits = owed_;
    message.request = endpoint_.send(credit_tag, bytes_of(*message.credits), memory_.get());
    if (message.request) owed_ = 0;
  }
}

}  // namespace gyre::transport
