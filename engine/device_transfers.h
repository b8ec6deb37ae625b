// Groups of sends and receives of GPU memory, in the order of streams. The GPU copies what is sent to pinned memory of the host, and says
// so; a thread has the group carried there, by a communicator of the host's; and the GPU, which has waited, copies what was received. The
// thread makes no call into CUDA, which may stand behind a launch that waits for it.
//
//   a stream of its own:  follow │ copies out │ raise ready │ wait for the gate │ copies in │ raise ended │ lead
//   the thread:                                └───────> exchange ──────> open ┘
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "engine/communicator.h"
#include "kernels/gpu.h"

namespace gyre::engine {

class DeviceTransfers {
 public:
  /// Of a group, at most: more could fill the stream, and its caller would wait for what other ranks send.
  static constexpr size_t most = 256;
  /// So much pinned memory for messages at most, as the largest group so far takes.
  static constexpr size_t most_bytes = size_t{1} << 30;

  /// The GPU must outlive it.
  explicit DeviceTransfers(kernels::Gpu& gpu) : gpu_(gpu) {}
  /// As DeviceCommunicator's end.
  ~DeviceTransfers();
  DeviceTransfers(const DeviceTransfers&) = delete;
  DeviceTransfers& operator=(const DeviceTransfers&) = delete;

  // By one thread at a time.

  /// Takes what such a group needs and is not there yet: at first a stream and a thread, and pinned memory. False: it is not to be had, or
  /// would be too much.
  bool make_room(std::span<const Transfer>);
  /// Gives `user`, a stream, a group that has nothing wrong by itself, once there is room; returns at once, unless streams are full. Groups
  /// are carried in the order in which they are given, by a communicator that outlives this and is nobody else's until carried(). What goes
  /// wrong later holds `user`, and the streams of all that comes later, until let_go(), as does half of a group, where the stream takes no
  /// more, which is an error.
  Status give(Communicator& by, std::span<const Transfer>, void* user);

  // From any thread.

  /// Null: nothing has gone wrong so far.
  const Error* failure() const { return failed_.load(std::memory_order_acquire) ? &*failure_ : nullptr; }
  /// All that was given has been carried, or never will be. Streams may be behind, or before it where they were let go.
  bool carried() const;
  /// The same, and streams have passed it; after an error nobody knows.
  bool idle() const;
  /// Streams go on, now and later: when the communicator was aborted.
  void let_go();

 private:
  struct Given {
    Communicator* by;
    uint64_t ticket;
    std::vector<Transfer> transfers;  // of memory of the host
  };
  /// Of pinned memory.
  struct Flags {
    alignas(128) uint64_t ready, ended;  // by the GPU
    alignas(128) uint64_t gate;
  };
  struct Copy {
    const void* from;
    void* to;
    size_t bytes;
  };

  Status open();
  Status take_bounce(size_t bytes);
  Status begin(Communicator&, std::span<const Transfer>, void* user);
  Result<uint64_t> announce(Communicator&, std::vector<Transfer>);
  Flags& flags() const { return *reinterpret_cast<Flags*>(flags_memory_.get()); }
  Status give_work(const std::vector<Copy>& out, const std::vector<Copy>& in, uint64_t ticket);
  Status copy(const std::vector<Copy>&);
  void serve();
  Status carry(const Given&) const;
  void fail(const Error&);
  void leave_remains();

  // Of callers.
  kernels::Gpu& gpu_;
  std::unique_ptr<kernels::Stream> stream_;
  kernels::GpuMemory flags_memory_;
  std::vector<kernels::GpuMemory> bounces_;   // the last is used; what is under way may use those before
  size_t bounce_bytes_ = 0, held_bytes_ = 0;  // of the last, and of all

  mutable std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  Flags* flags_ = nullptr;     // null: there is no thread
  std::deque<Given> waiting_;  // the first is being carried, and whose communicator is the thread's
  uint64_t given_ = 0;         // the last ticket
  bool let_go_ = false;
  bool over_ = false;
  std::optional<Error> failure_;     // written once …
  std::atomic<bool> failed_{false};  // … before this
  std::thread thread_;
};

}  // namespace gyre::engine
