// The messages of the other direction: announced with their places, taken from the socket in order. Short ones come through a read-ahead
// buffer, several in one call; of a long one the header does, and the bytes go straight to their place, in the same call as the header
// behind them. Nothing is written to a place before the header agrees with what was announced. Allocates nothing after construction;
// never blocks.
#pragma once
#include <vector>

#include "transport/tcp/outgoing.h"

namespace gyre::transport::tcp {

class Incoming {
 public:
  explicit Incoming(const Slots&);
  /// What the slots of one take, and what it reads ahead.
  static size_t footprint(const Slots&);

  /// Announces the next message, see Fifo::expect().
  bool expect(uint64_t plan, std::byte* destination, size_t bytes);
  /// What was announced has not all come, and may still.
  bool awaits() const { return arrived_ < expected_ && !differs_; }
  /// Announced and not popped.
  bool owes() const { return popped_ < expected_; }
  /// The oldest message: arrived, or not the one that was announced, in which case its data is not to be looked at.
  Arrival front() const;
  void pop() { ++popped_; }

  struct Outcome {
    bool moved = false;    ///< something came
    bool ended = false;    ///< nothing more will
    bool goodbye = false;  ///< because the peer is done
    bool strange = false;  ///< what came is no message; refused() has its header
    int error = 0;         ///< that ends the connection
  };
  /// Takes what has come, as far as it was announced.
  Outcome read(int fd);
  const Header& refused() const { return header_; }

 private:
  struct Announced {
    uint64_t plan = 0;
    std::byte* data = nullptr;
    size_t bytes = 0;
  };
  const Announced& announced(uint64_t message) const { return announced_[message % credits_]; }
  std::byte* slot(uint64_t message) { return slots_.get() + (message % credits_) * stride_; }
  size_t ahead_bytes() const;
  ssize_t receive(int fd, size_t& asked);
  void sort(Outcome&);
  bool take_header(Outcome&);
  bool take_bytes();

  const uint32_t credits_;
  const size_t slot_bytes_, stride_;
  AlignedBytes slots_;
  std::vector<Announced> announced_;  // message i is at i % credits
  uint64_t expected_ = 0, arrived_ = 0, popped_ = 0;

  AlignedBytes ahead_;  // bytes that were read and not used yet: [begin_, end_)
  size_t begin_ = 0, end_ = 0;
  Header header_;            // of the message that is being taken
  bool in_message_ = false;  // its header agreed
  bool differs_ = false;     // it did not
  size_t filled_ = 0;        // bytes of it at their place
};

}  // namespace gyre::transport::tcp
