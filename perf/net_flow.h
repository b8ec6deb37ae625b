// Messages of one size over one connection, at one end, moved as NCCL's proxy moves them: a step posts one message at the most while
// fewer than `depth` are under way, and tests the oldest. Message i lies in slot i modulo depth of the connection's buffer.
// After it is made: no allocation, no system call.
#pragma once
#include <optional>
#include <span>

#include "perf/net_connections.h"
#include "perf/sweep_buffer.h"

namespace gyre::perf {

inline constexpr int most_net_depth = 256;

/// Slots for messages, registered with a comm.
class NetSlots {
 public:
  /// `shared`: all slots are the same memory, as other programs measure; contents then mean nothing.
  static Result<NetSlots> make(NetPlugin&, NetComm, size_t bytes, int depth, bool shared);
  NetSlots(NetSlots&&) = default;
  NetSlots& operator=(NetSlots&&) = delete;
  ~NetSlots();
  std::span<std::byte> slot(size_t index) const { return {static_cast<std::byte*>(buffer_.data()) + index * stride_, bytes_}; }
  void* mhandle() const { return registration_->mhandle; }

 private:
  struct Registration {
    NetPlugin& plugin;
    NetComm comm;
    void* mhandle;
    Registration(NetPlugin& p, NetComm c, void* m) : plugin(p), comm(c), mhandle(m) {}
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration();
  };
  NetSlots(SweepBuffer buffer, size_t bytes, size_t stride) : buffer_(std::move(buffer)), bytes_(bytes), stride_(stride) {}

  SweepBuffer buffer_;
  std::unique_ptr<Registration> registration_;
  size_t bytes_;
  size_t stride_;
};

class NetFlow {
 public:
  NetFlow(NetPlugin& plugin, NetComm comm, const NetSlots& slots, int depth, int index)
      : plugin_(plugin), comm_(comm), slots_(slots), depth_(static_cast<size_t>(depth)), index_(index) {}

  /// What follows is `messages` more. `checked`: each is filled before it is sent and compared when it is there.
  void start(uint64_t messages, bool checked);
  bool finished() const { return done_ == total_; }
  /// Sets `moved` where a message was posted or is done.
  Status step(bool& moved) {
    if (posted_ < total_ && posted_ - done_ < depth_) GYRE_TRY(post(moved));
    if (done_ < posted_) GYRE_TRY(test(moved));
    return {};
  }
  /// One post or one test, for who needs them apart; `moved` as above.
  Status post(bool& moved);
  Status test(bool& moved);
  uint64_t posted() const { return posted_; }
  uint64_t done() const { return done_; }

  uint64_t wrong() const { return wrong_; }  ///< bytes, of the messages since start()

 private:
  uint64_t pattern_of(uint64_t message) const { return message * 64 + static_cast<uint64_t>(index_); }
  size_t after(size_t slot) const { return slot + 1 == depth_ ? 0 : slot + 1; }  // a division would cost as much as a call
  void check(int received);

  NetPlugin& plugin_;
  NetComm comm_;
  const NetSlots& slots_;
  size_t depth_;
  int index_;  ///< of the connection: its messages differ from those of others
  uint64_t total_ = 0, posted_ = 0, done_ = 0, wrong_ = 0;
  size_t next_slot_ = 0, oldest_slot_ = 0;
  bool checked_ = false;
  std::array<void*, most_net_depth> requests_{};
};

/// Moves messages until all flows are finished.
Status run_flows(std::span<NetFlow> flows, NetPatience&);

}  // namespace gyre::perf
