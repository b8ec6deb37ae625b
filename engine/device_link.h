// A connection's messages of one collective on a device, by what the GPU has done so far: which have come, which it has read, which it has
// made. Makes no call into CUDA, and must not know: steps, kernels.
#pragma once
#include <memory>
#include <optional>
#include <span>

#include "engine/device_steps.h"
#include "engine/landing.h"
#include "transport/transport.h"

namespace gyre::engine {

class DeviceLink {
 public:
  /// What all outlives it. `arriving`, `leaving`: bytes of each message.
  struct Messages {
    transport::Fifo& fifo;
    uint64_t word = 0;  ///< of the collective
    std::span<const size_t> arriving, leaving;
    const Staging& staging;
    uint32_t connection = 0;
    Landing* landing = nullptr;    ///< where the staging lies in memory of the GPU that the network reaches; null: in memory of the host
    size_t slot_bytes = SIZE_MAX;  ///< of the connection: longer messages go in parts, but where it takes them from the staging
  };
  explicit DeviceLink(const Messages& messages) : messages_(messages) {}
  DeviceLink(const DeviceLink&) = delete;
  DeviceLink& operator=(const DeviceLink&) = delete;
  virtual ~DeviceLink() = default;

  /// For the same messages once more, in another collective of this word; idle() it was.
  virtual void again(uint64_t word) {
    messages_.word = word;
    arrived_ = read_ = made_ = sent_ = freed_ = 0;
  }
  /// Brings what can be brought; true: something was.
  virtual bool receive() = 0;
  virtual bool send() = 0;
  /// Nothing is under way, nor will be.
  virtual bool idle() const;

  // What kernels have done, in the order of messages.
  void note_read() { ++read_; }
  void note_made() { ++made_; }
  /// What kernels may do.
  bool has(uint32_t message) const { return message < arrived_; }
  bool has_room(uint32_t message) const { return message < freed_ + messages_.staging.credits; }

  /// A message came that is not of this collective.
  bool strange() const { return strange_; }
  /// Why it can't go on.
  std::optional<Error> wrong() const { return messages_.landing != nullptr ? messages_.landing->failure() : std::nullopt; }
  /// It can't go on without the peer, kernels aside.
  bool awaits_peer() const { return freed_ < made_; }

 protected:
  Messages messages_;
  uint32_t arrived_ = 0, read_ = 0;           // in
  uint32_t made_ = 0, sent_ = 0, freed_ = 0;  // out
  bool strange_ = false;
};

/// `on_gpu`: the receiver's kernels read messages where the sender's have written them.
std::unique_ptr<DeviceLink> device_link(const DeviceLink::Messages&, bool on_gpu);

}  // namespace gyre::engine
