#include "transport/tcp/outgoing.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace gyre::transport::tcp {
namespace {

// Up to here a copy costs less than the second piece of memory costs the kernel.
constexpr size_t copied_bytes = 4096;
constexpr size_t most_pieces = 16;  // in one call

// The copies of short messages, too, lie in slots.
size_t sent_room(const Slots& slots) { return (std::max(slots.bytes, copied_bytes) + 63) / 64 * 64; }

}  // namespace

size_t Outgoing::footprint(const Slots& slots) { return std::max(slots.credits, 1U) * (payload_place + sent_room(slots)); }

Outgoing::Outgoing(const Slots& slots)
    : credits_(std::max(slots.credits, 1U)),
      stride_(payload_place + sent_room(slots)),
      memory_(aligned_bytes(footprint(slots))),
      messages_(credits_) {}

void Outgoing::put_header(uint64_t plan, size_t bytes) {
  const Header header{message_magic, static_cast<uint32_t>(bytes), plan};
  std::memcpy(slot() - sizeof header, &header, sizeof header);
}

void Outgoing::add(uint64_t plan, size_t bytes) {
  put_header(plan, bytes);
  messages_[sent_++ % credits_] = {nullptr, sizeof(Header) + bytes, 0};
}

void Outgoing::add(uint64_t plan, const std::byte* data, size_t bytes) {
  if (bytes <= copied_bytes) {
    if (bytes != 0) std::memcpy(slot(), data, bytes);
    return add(plan, bytes);
  }
  put_header(plan, bytes);
  messages_[sent_++ % credits_] = {data, sizeof(Header), bytes};
}

int Outgoing::write(int fd) {
  while (taken_ < sent_) {
    std::array<iovec, most_pieces> pieces;
    size_t count = 0;
    size_t asked = 0;
    size_t skip = offset_;
    const auto piece = [&](const std::byte* data, size_t bytes) {
      const size_t skipped = std::min(skip, bytes);
      skip -= skipped;
      if (skipped == bytes) return;
      // The system's type is for reading too.
      pieces[count++] = {const_cast<std::byte*>(data) + skipped, bytes - skipped};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
      asked += bytes - skipped;
    };
    for (uint64_t i = taken_; i < sent_ && count + 2 <= most_pieces; ++i) {
      const Message& message = messages_[i % credits_];
      piece(payload(i) - sizeof(Header), message.in_slot);
      piece(message.data, message.outside);
    }
    msghdr all{};
    all.msg_iov = pieces.data();
    all.msg_iovlen = count;
    constexpr int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    const ssize_t bytes = count == 1 ? ::send(fd, pieces[0].iov_base, pieces[0].iov_len, flags) : ::sendmsg(fd, &all, flags);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? 0 : errno;
    take(static_cast<size_t>(bytes));
    if (static_cast<size_t>(bytes) < asked) return 0;  // it is full
  }
  return 0;
}

void Outgoing::take(size_t bytes) {
  offset_ += bytes;
  for (; taken_ < sent_; ++taken_) {
    const Message& message = messages_[taken_ % credits_];
    if (offset_ < message.in_slot + message.outside) return;
    offset_ -= message.in_slot + message.outside;
  }
}

}  // namespace gyre::transport::tcp
