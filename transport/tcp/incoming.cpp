#include "transport/tcp/incoming.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace gyre::transport::tcp {
namespace {

// A message of up to here costs less to copy once more than a call for its bytes alone.
constexpr size_t ahead_capacity = 8192;
constexpr size_t short_bytes = ahead_capacity - sizeof(Header);

size_t arrival_room(const Slots& slots) { return (std::max<size_t>(slots.bytes, 1) + 63) / 64 * 64; }

}  // namespace

size_t Incoming::footprint(const Slots& slots) { return std::max(slots.credits, 1U) * arrival_room(slots) + ahead_capacity; }

Incoming::Incoming(const Slots& slots)
    : credits_(std::max(slots.credits, 1U)),
      slot_bytes_(slots.bytes),
      stride_(arrival_room(slots)),
      slots_(aligned_bytes(credits_ * stride_)),
      announced_(credits_),
      ahead_(aligned_bytes(ahead_capacity)) {}

bool Incoming::expect(uint64_t plan, std::byte* destination, size_t bytes) {
  if (expected_ - popped_ == credits_) return false;
  announced_[expected_ % credits_] = {plan, destination != nullptr ? destination : slot(expected_), bytes};
  ++expected_;
  return true;
}

Arrival Incoming::front() const {
  if (popped_ < arrived_) {
    const Announced& message = announced(popped_);
    return {message.data, message.bytes, message.plan};
  }
  if (differs_) return {ahead_.get(), header_.bytes, header_.plan};
  return {};
}

Incoming::Outcome Incoming::read(int fd) {
  Outcome outcome;
  const uint64_t before = arrived_;
  sort(outcome);
  while (arrived_ == before && awaits() && !outcome.ended) {
    size_t asked = 0;
    const ssize_t bytes = receive(fd, asked);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) outcome.error = errno, outcome.ended = true;
      return outcome;
    }
    outcome.moved |= bytes > 0;
    outcome.ended = bytes == 0;
    sort(outcome);
    if (static_cast<size_t>(bytes) < asked) return outcome;  // there was no more
  }
  return outcome;
}

// How far to read beyond the message that is being taken: of a long one that comes next only the header, as its bytes have a place.
size_t Incoming::ahead_bytes() const {
  const uint64_t next = arrived_ + (in_message_ ? 1 : 0);
  const bool is_long = next < expected_ && announced(next).bytes > short_bytes;
  return (is_long ? sizeof(Header) : ahead_capacity) - end_;
}

ssize_t Incoming::receive(int fd, size_t& asked) {
  if (begin_ != 0) {  // less than a header is left
    std::memmove(ahead_.get(), ahead_.get() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  const size_t ahead = ahead_bytes();
  const size_t missing = in_message_ ? header_.bytes - filled_ : 0;
  asked = missing + ahead;
  ssize_t bytes = 0;
  if (missing == 0) {
    bytes = ::recv(fd, ahead_.get() + end_, ahead, MSG_DONTWAIT);
  } else {
    std::array<iovec, 2> pieces{iovec{announced(arrived_).data + filled_, missing}, iovec{ahead_.get(), ahead}};
    msghdr all{};
    all.msg_iov = pieces.data();
    all.msg_iovlen = pieces.size();
    bytes = ::recvmsg(fd, &all, MSG_DONTWAIT);
  }
  if (bytes <= 0) return bytes;
  const size_t placed = std::min(missing, static_cast<size_t>(bytes));
  filled_ += placed;
  end_ += static_cast<size_t>(bytes) - placed;
  return bytes;
}

// Gives what was read to the messages that it belongs to.
void Incoming::sort(Outcome& outcome) {
  while (in_message_ ? take_bytes() : take_header(outcome)) {
  }
  if (begin_ == end_) begin_ = end_ = 0;
}

bool Incoming::take_header(Outcome& outcome) {
  if (differs_ || end_ - begin_ < sizeof header_) return false;
  std::memcpy(&header_, ahead_.get() + begin_, sizeof header_);
  if (header_.magic == goodbye_magic || header_.magic != message_magic || header_.bytes > slot_bytes_) [[unlikely]] {
    outcome.ended = true;
    outcome.goodbye = header_.magic == goodbye_magic;
    outcome.strange = !outcome.goodbye;
    return false;
  }
  if (arrived_ == expected_) return false;
  const Announced& message = announced(arrived_);
  differs_ = message.plan != header_.plan || message.bytes != header_.bytes;
  if (differs_) return false;
  begin_ += sizeof header_;
  in_message_ = true;
  filled_ = 0;
  return true;
}

bool Incoming::take_bytes() {
  const Announced& message = announced(arrived_);
  const size_t bytes = std::min(end_ - begin_, message.bytes - filled_);
  if (bytes != 0) std::memcpy(message.data + filled_, ahead_.get() + begin_, bytes);
  begin_ += bytes;
  filled_ += bytes;
  if (filled_ < message.bytes) return false;
  in_message_ = false;
  ++arrived_;
  return true;
}

}  // namespace gyre::transport::tcp
