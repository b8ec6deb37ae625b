#include "engine/device_link.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace gyre::engine {
namespace {

/// How far messages have gone, which go in parts.
struct InParts {
  uint32_t message = 0;
  size_t bytes = 0;  // of it

  size_t part(std::span<const size_t> all, size_t most) const { return std::min(all[message] - bytes, most); }
  void pass(std::span<const size_t> all, size_t part) {
    bytes += part;
    if (bytes == all[message]) ++message, bytes = 0;
  }
};

/// By staging on both sides, between which the transport carries them. What has come counts as arrived when kernels can see it.
class CarriedLink final : public DeviceLink {
 public:
  explicit CarriedLink(const Messages& messages)
      : DeviceLink(messages), numbers_(messages.staging.credits), flushes_(messages.landing != nullptr ? messages.staging.credits : 0) {}

  void again(uint64_t word) override {
    DeviceLink::again(word);
    announced_ = came_ = out_ = {};
  }

  bool receive() override {
    const std::span<const size_t> bytes = messages_.arriving;
    transport::Fifo& from = messages_.fifo;
    const auto room = static_cast<uint32_t>(std::min(bytes.size(), read_ + messages_.staging.credits));
    while (from.posted() && announced_.message < room) {
      const size_t part = announced_.part(bytes, most());
      if (!from.expect(messages_.word, in_place() ? place(announced_) : nullptr, part)) break;
      announced_.pass(bytes, part);
    }
    bool any = false;
    while (came_.message < room) {
      const transport::Arrival arrival = from.front();
      if (arrival.data == nullptr) break;
      // Nothing is touched before both sides agree on what they run.
      strange_ = arrival.plan != messages_.word || arrival.bytes != came_.part(bytes, most());
      if (strange_) break;
      take(arrival);
      came_.pass(bytes, arrival.bytes);
      from.pop();
      any = true;
    }
    for (; arrived_ < came_.message && seen(arrived_); any = true) ++arrived_;
    return any;
  }

  bool send() override {
    transport::Fifo& to = messages_.fifo;
    bool any = false;
    for (; out_.message < made_ && pass(); any = true) sent_ = out_.message;
    if (!to.posted()) {
      freed_ = sent_;
    } else if (freed_ < sent_) {  // asking also sends what could not be sent yet
      const uint64_t completed = to.completed();
      while (freed_ < sent_ && numbers_[freed_ % numbers_.size()] <= completed) ++freed_;
    }
    return any;
  }

 private:
  /// Sent from staging, and received there. Not asked when this is made: by then a connection may have ended that nobody knows of.
  bool in_place() const { return messages_.landing != nullptr || messages_.fifo.direct(); }
  // Of a part: both ends have the same, whether or not one of them has its staging where the network reaches it.
  size_t most() const { return messages_.fifo.direct() ? SIZE_MAX : messages_.slot_bytes; }
  std::byte* place(const InParts& in) const { return messages_.staging.incoming(messages_.connection, in.message) + in.bytes; }

  void take(const transport::Arrival& arrival) {
    std::byte* const to = place(came_);
    if (!flushes_.empty())
      flush_of(came_.message) = arrival.bytes != 0 ? messages_.landing->came(to) : 0;
    else if (arrival.data != to && arrival.bytes != 0)
      std::memcpy(to, arrival.data, arrival.bytes);
  }
  bool seen(uint32_t message) { return flushes_.empty() || messages_.landing->seen(flush_of(message)); }
  uint64_t& flush_of(uint32_t message) { return flushes_[message % flushes_.size()]; }

  // False: no credit.
  bool pass() {
    transport::Fifo& to = messages_.fifo;
    const std::byte* const part = messages_.staging.outgoing(messages_.connection, out_.message) + out_.bytes;
    const size_t bytes = out_.part(messages_.leaving, most());
    if (in_place()) {
      if (!to.send_from(messages_.word, part, bytes)) return false;
    } else {
      std::byte* const slot = to.reserve(bytes);
      if (slot == nullptr) return false;
      if (bytes != 0) std::memcpy(slot, part, bytes);
      to.commit(messages_.word, bytes);
    }
    numbers_[out_.message % numbers_.size()] = to.sent();
    out_.pass(messages_.leaving, bytes);
    return true;
  }

  InParts announced_, came_, out_;
  std::vector<uint64_t> numbers_;  // [place]: what completed() must reach; of posted connections
  std::vector<uint64_t> flushes_;  // [place]: by which it can be seen; none: as it comes
};

/// What the transport carries of messages that stay on GPUs: that there is one, and that one has been read, so that its place is free.
constexpr std::byte tokens[]{std::byte{1}, std::byte{2}};
enum class Token : uint8_t { made, read };

/// Tokens are taken as they come, whatever kernels do meanwhile: so they never keep others back, nor themselves need room. Both ends know
/// how many there are: two for each message.
class GpuLink final : public DeviceLink {
 public:
  using DeviceLink::DeviceLink;

  void again(uint64_t word) override {
    DeviceLink::again(word);
    announced_ = 0, returned_ = 0;
  }

  bool receive() override {
    transport::Fifo& from = messages_.fifo;
    const size_t all = messages_.arriving.size() + messages_.leaving.size();
    for (; from.posted() && announced_ < all; ++announced_) {
      if (!from.expect(messages_.word, nullptr, 1)) break;
    }
    const size_t before = taken();
    while (taken() < all) {
      const transport::Arrival arrival = from.front();
      if (arrival.data == nullptr) break;
      strange_ = arrival.plan != messages_.word || arrival.bytes != 1;
      if (strange_) break;
      ++(*arrival.data == tokens[static_cast<size_t>(Token::made)] ? arrived_ : freed_);
      from.pop();
    }
    return taken() != before;
  }

  bool send() override {
    const uint32_t before = sent_ + returned_;
    while (sent_ < made_ && pass(Token::made)) ++sent_;
    while (returned_ < read_ && pass(Token::read)) ++returned_;
    if (completed_ < number_) completed_ = messages_.fifo.completed();  // asking also sends what could not be sent yet
    return sent_ + returned_ != before;
  }

  bool idle() const override { return DeviceLink::idle() && returned_ == messages_.arriving.size() && completed_ >= number_; }

 private:
  size_t taken() const { return size_t{arrived_} + freed_; }

  bool pass(Token token) {
    transport::Fifo& to = messages_.fifo;
    const std::byte& byte = tokens[static_cast<size_t>(token)];
    if (to.direct()) {
      if (!to.send_from(messages_.word, &byte, 1)) return false;
    } else {
      std::byte* const slot = to.reserve(1);
      if (slot == nullptr) return false;
      *slot = byte;
      to.commit(messages_.word, 1);
    }
    if (to.posted()) number_ = to.sent();
    return true;
  }

  size_t announced_ = 0;
  uint32_t returned_ = 0;                // of those read, which the peer has been told
  uint64_t number_ = 0, completed_ = 0;  // of posted connections: of the last token, and what is out
};

}  // namespace

bool DeviceLink::idle() const { return freed_ == messages_.leaving.size() && arrived_ == messages_.arriving.size(); }

std::unique_ptr<DeviceLink> device_link(const DeviceLink::Messages& messages, bool on_gpu) {
  if (on_gpu) return std::make_unique<GpuLink>(messages);
  return std::make_unique<CarriedLink>(messages);
}

}  // namespace gyre::engine
