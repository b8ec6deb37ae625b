// The messages of one direction of a connection that the kernel has not taken yet, oldest first. A message is complete once the kernel has
// all of it, since that is a copy. A short one is copied behind its header, so that it is one piece of memory and one call; a long one is
// sent from where it lies. Allocates nothing after construction; never blocks.
#pragma once
#include <memory>
#include <new>
#include <vector>

#include "transport/tcp/wire.h"
#include "transport/transport.h"

namespace gyre::transport::tcp {

struct AlignedDelete {
  static constexpr std::align_val_t alignment{64};
  void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
};
using AlignedBytes = std::unique_ptr<std::byte, AlignedDelete>;
inline AlignedBytes aligned_bytes(size_t bytes) {
  return AlignedBytes(static_cast<std::byte*>(::operator new(bytes, AlignedDelete::alignment)));
}

class Outgoing {
 public:
  explicit Outgoing(const Slots&);
  /// What the slots of one take.
  static size_t footprint(const Slots&);

  bool room() const { return sent_ - taken_ < credits_; }
  bool waiting() const { return taken_ < sent_; }
  uint64_t sent() const { return sent_; }
  uint64_t taken() const { return taken_; }  ///< by the kernel

  /// Where the next message can be written; there must be room.
  std::byte* slot() { return payload(sent_); }
  /// The next message is in slot().
  void add(uint64_t plan, size_t bytes);
  /// The next message is there, or in slot() where it is short.
  void add(uint64_t plan, const std::byte* data, size_t bytes);
  /// Hands over what the kernel takes now. Returns an errno that ends the connection, or 0.
  int write(int fd);

 private:
  struct Message {
    const std::byte* data = nullptr;  ///< what does not follow the header in the slot
    size_t in_slot = 0;               ///< bytes, the header among them
    size_t outside = 0;
  };
  std::byte* payload(uint64_t message) { return memory_.get() + (message % credits_) * stride_ + payload_place; }
  void put_header(uint64_t plan, size_t bytes);
  void take(size_t bytes);

  static constexpr size_t payload_place = 64;

  const uint32_t credits_;
  const size_t stride_;
  AlignedBytes memory_;
  std::vector<Message> messages_;  // message i is at i % credits
  uint64_t sent_ = 0, taken_ = 0;
  size_t offset_ = 0;  // in the oldest
};

}  // namespace gyre::transport::tcp
