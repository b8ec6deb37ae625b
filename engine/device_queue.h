// The stream of a communicator, and the flags by which the host and its kernels hand each other the steps. Kernels are numbered through
// all collectives: their tickets. The host opens the gate for them in that order; the GPU says up to where they have ended. So no call into
// CUDA is needed while a collective is on its way, and one communicator's gate never has to be closed again.
#pragma once
#include <atomic>
#include <memory>
#include <optional>

#include "engine/device_replays.h"
#include "engine/device_steps.h"
#include "kernels/gpu.h"
#include "kernels/mem.h"

namespace gyre::engine {

/// How kernels wait for their turn.
enum class HandOff : uint8_t {
  gates,    ///< the stream waits for flags between step kernels: nothing occupies the GPU meanwhile, but a stream takes so many operations
            ///< only
  stays,    ///< one kernel stays for all steps and polls
  packets,  ///< for nobody's: a call's only one finds what others have left for it (kernels/packet.h)
  mapped,   ///< by gates, around a call's only one, which works on all ranks' buffers (device_mapped.h)
};

/// What of a collective's kernels is known by number.
struct Tickets {
  uint64_t first = 0, end = 0;
  HandOff hand_off = HandOff::gates;
  bool replay = false;  ///< of a kernel in a graph: counted by themselves
};

class DeviceQueue {
 public:
  static Result<std::unique_ptr<DeviceQueue>> open(kernels::Gpu&, MessagePath);
  ~DeviceQueue();  ///< kernels that wait are let go; the stream ends
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  /// Gates where the stream has them and holds so many, else a kernel that stays.
  HandOff fitting(const DeviceSteps&) const;
  /// Error: this GPU has no such kernels.
  Status refuse(const Call&) const;
  // By one thread at a time, for one collective after the other.
  /// Its kernels may be opened from then on, whether or not the stream has them yet.
  Tickets reserve(size_t count, HandOff);
  /// Gives the stream its kernels, between what `user`, a stream, has been given so far and what it will be. `announced`: replays() is told
  /// when it begins, by 0, unless it has no kernels. Where the stream takes only half of them `user` is held until all are let go.
  Status give(const Call&, const DeviceSteps&, const Tickets&, void* user, bool announced);
  /// The same of a call of packets: for its only kernel, which is told what this knows. It waits for no gate.
  Status give(const Call&, kernels::PacketArgs, const Tickets&, void* user, bool announced);
  /// By which the kernel of a mapped call is told what it works on.
  const kernels::StepList* list() const { return &shared_->list; }
  /// Makes a rank's own buffers of packets ready for the first call of them; before what is given next.
  Status clear(kernels::PacketBuffers* own);
  /// As kernels::Stream::capture_of().
  Result<uint64_t> capture_of(void* user) { return stream_->capture_of(user); }
  /// Adds the collective's kernel, one that stays, to the graph that `user` is captured in.
  Status capture(const Call&, const DeviceSteps&, const DeviceReplays::Place&, std::shared_ptr<void> holder, void* user);
  DeviceReplays& replays() { return *replays_; }

  // By whoever moves the collective.
  /// Whether that kernel can be told to go: of kernels that stay, so many fit the ring. And tells it what to do; open() lets it go.
  bool prepare(const Call&, const Tickets&, const DeviceKernel&, uint64_t ticket);
  /// Lets kernels with lower tickets go.
  void open(const Tickets&, uint64_t ticket);
  /// Has the list written for the kernel of a mapped call, all but the ticket, before that is let go.
  template <class Write>
  void write_list(uint64_t ticket, const Write& write) {
    write(shared_->list);
    kernels::store_release(&shared_->list.ticket, ticket);
  }
  /// Where kernels that go by gates say how far they are, by tickets; also when this has ended.
  std::shared_ptr<const uint64_t> ended_flag() const { return {memory_, &shared_->ended}; }
  /// Lets none go any more, also of those that open() would have and the stream has not come to. Nothing, once all have been let go.
  void hold();
  /// All kernels of the collective with lower tickets have ended.
  uint64_t ended(const Tickets&) const;
  /// The kernel of a call of packets has.
  bool begun(const Tickets&) const;
  /// Lets all go that wait, now and later, which else holds their streams: what no longer matters is computed, of whatever others are
  /// writing, or nothing. Not while a collective is moved, nor before another is.
  void let_go(kernels::ReplayDoor::State state = kernels::ReplayDoor::let_go);
  /// Error: the GPU has failed. From any thread.
  Status works() { return GYRE_TRY(stream_->done()), Status(); }
  /// As kernels::Stream::done(), also of what graphs do with this communicator's memory. When nobody gives or moves anything any more.
  Result<bool> done() { return GYRE_TRY(stream_->done()) && replays_->all_left(); }

 private:
  static constexpr unsigned most_blocks = kernels::most_stay_blocks;  // what a network brings keeps no more busy

  DeviceQueue(kernels::Gpu&, MessagePath);
  template <class Give>
  Status between(void* user, const Give& give);
  Status announce() { return stay(kernels::stay_kernel_of(DataType::uint8, ReduceOp::sum), {}, true); }
  Status give_kernels(const Call&, const DeviceSteps&, const Tickets&, bool announced);
  unsigned most_blocks_of(const DeviceKernel&) const;
  Status wait_and_run(const DeviceSteps&, uint64_t first);
  Status stay(kernels::StayKernel, const Tickets&, bool announced);
  StayLane& lane(const Tickets& tickets) const { return tickets.replay ? replays_->lane() : shared_->lane; }

  /// Of pinned memory.
  struct Shared {
    alignas(128) uint64_t ended;  // by gates
    StayLane lane;
    kernels::PacketDoor packets;
    alignas(128) kernels::StepList list;
  };
  kernels::Gpu& gpu_;
  unsigned blocks_;       // of a kernel that stays
  unsigned step_blocks_;  // of another, at most
  std::shared_ptr<std::byte[]> memory_;
  Shared* shared_ = nullptr;
  std::shared_ptr<DeviceReplays> replays_;
  std::unique_ptr<kernels::Stream> stream_;
  uint64_t next_ = 0;  // ticket
  std::atomic<bool> let_go_{false};
};

}  // namespace gyre::engine
