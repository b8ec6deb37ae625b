// A communicator whose collectives are given to a GPU's stream and run in its order, on memory of that GPU: by kernels that wait on a
// stream of the communicator's own, and a thread that brings them messages.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/communicator.h"
#include "engine/device_graphs.h"
#include "engine/device_mapped.h"
#include "engine/device_memory.h"
#include "engine/device_packets.h"
#include "engine/device_run.h"
#include "engine/mapped_board.h"
#include "kernels/gpu.h"

namespace gyre::engine {

class DeviceCommunicator {
 public:
  /// A call by packets waits while more than so many others have not ended: a stream holds some thousand operations, each call is three.
  static constexpr uint64_t most_ahead = 128;

  /// Takes a communicator that has run nothing, on all ranks, which call this together; the GPU must outlive this. All memory that the host
  /// needs is taken now. Ranks that reach the memory of each other's GPUs leave messages there.
  static Result<std::unique_ptr<DeviceCommunicator>> create(std::unique_ptr<Communicator>, kernels::Gpu&);
  /// What is under way ends, here and on other ranks, and streams go on without it, as after abort(): finish() first, also where a stream
  /// has been waited for, since others may still need what this rank's GPU has done. Where this one's stream waits for another
  /// communicator's, that one may be ended later: what the stream uses is then given back when it is done, by a thread.
  ~DeviceCommunicator();
  DeviceCommunicator(const DeviceCommunicator&) = delete;
  DeviceCommunicator& operator=(const DeviceCommunicator&) = delete;

  Rank rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }

  // From any thread.

  /// Gives `user`, a stream, a collective, which all ranks call alike: it begins after all that the stream was given before, and what the
  /// stream is given next begins after it. Returns at once, unless streams are full, or most_ahead are under way. Buffers as
  /// Communicator::run()'s, of the GPU; they are the collective's until the stream has passed it. What goes wrong later is status()'s, and
  /// holds the stream, as does half of a collective, where the stream takes no more, which is an error of the call: what comes behind a
  /// collective that has not finished must not take its result for one. `hand_off`: gates only where they fit, and packets, or
  /// buffers that all map, only where they can carry the call, on all ranks or none. A stream that is captured in a CUDA graph has the
  /// collective captured, which then runs whenever that does: as a kernel that stays. While graphs hold collectives, these and all others
  /// are run in the order in which the GPU begins them, which must be the ranks' order.
  Status enqueue(const Call&, const void* input, void* output, void* user, std::optional<HandOff> hand_off = {});
  /// Error: why such a call could not be given.
  Status why_not(const Call&);
  /// What the collective given last takes of the GPU, as known to whoever gave it.
  struct Given {
    HandOff hand_off = HandOff::gates;
    std::string_view algorithm;
    size_t kernels = 0;
    size_t bytes = 0;  ///< that they read and write
  };
  const Given& given() const { return given_last_; }
  /// All messages stay on GPUs.
  bool all_on_gpus() const { return memory_.everywhere(); }
  /// Some go by memory of the host.
  bool by_host() const { return memory_.by_host(); }
  /// Calls of little may go by packets.
  bool has_packets() const { return !memory_.packets().empty(); }
  /// Calls may be one kernel on each rank that works on all ranks' buffers.
  bool maps() const { return memory_.maps(); }
  /// What went wrong since. Streams are held at collectives that had not finished by then, and at replays that begin later, until abort()
  /// or the end of this: who waits for such a stream first waits for ever.
  Status status();
  /// The same so far as it has been noted: for who must neither wait nor call CUDA, while a graph is captured or a launch waits for room.
  /// That the GPU itself has failed is noted by calls, by status() and by finish().
  const Error* failure() const { return failed_.load(std::memory_order_acquire) ? &*failure_ : nullptr; }
  /// Blocks until all that was given has ended, or can't, also where the GPU has failed. While graphs hold collectives, these may run
  /// meanwhile: a graph that has begun its first one is waited for, and for a while one that has been launched only. After this none may
  /// run: where the communicator has ended, that is an error of the GPU. `meanwhile` is called every millisecond or so; its error ends it.
  Status finish(const std::function<Status()>& meanwhile = [] { return Status(); });
  /// All that was given has ended, and so have the graphs that have begun; after an error nobody knows.
  bool idle();
  /// Graphs hold collectives, and may run them at any time, or calls wait for the order of what they begin. Waits for nobody.
  bool in_graphs() const { return in_graphs_.load(std::memory_order_acquire); }
  /// As Communicator::abort(), also after an error. Streams go on, replays do nothing, and what collectives that had not finished gave is
  /// not to be used. Waits for other ranks' kernels that work on this rank's buffers, at most a second.
  void abort(std::string_view why);

 private:
  explicit DeviceCommunicator(std::unique_ptr<Communicator> communicator, kernels::Gpu& gpu)
      : communicator_(std::move(communicator)), gpu_(gpu) {}

  Status open();
  Result<Operation> prepare(const Call&, const void* input, void* output);
  Status give(Operation, void* user, std::optional<HandOff>);
  Status give_steps(Operation, void* user, std::optional<HandOff>);
  Status keep_close();
  Status give_packets(Operation, void* user);
  Status give_mapped(Operation, BoundPass, void* user);
  Status begin(Operation, bool announced);
  Result<std::unique_ptr<DeviceProgram>> program(const Operation&);
  Status capture(const Call&, const void* input, void* output, void* user, uint64_t graph);
  Result<DeviceReplays::Place> take_place();
  Status add_captured(const Operation&, std::unique_ptr<DeviceProgram>, const DeviceReplays::Place&, void* user, uint64_t graph);
  Result<const std::vector<schedule::Turn>*> turns(const Plan&);
  Result<std::byte*> scratch(size_t bytes);
  std::vector<std::unique_ptr<DeviceLink>> links(const DeviceProgram&, const Identity&) const;
  std::unique_lock<std::mutex> turn();
  void serve();
  void begin_next();
  void note_graphs() { in_graphs_.store(!graphs_.empty() || !waiting_.empty(), std::memory_order_release); }
  Result<std::optional<Operation>> next_begun();
  void rest(std::unique_lock<std::mutex>&);
  bool under_way() const { return ended_ != last_.number || !waiting_.empty(); }
  Error fail(const Error&);
  void let_go();
  void leave_remains();

  std::unique_ptr<Communicator> communicator_;
  kernels::Gpu& gpu_;

  // Of callers, who may wait for room in a stream, which the thread below makes.
  std::mutex calls_;
  DeviceMemory memory_;
  DevicePackets packets_;
  DeviceMapped mapped_;
  std::shared_ptr<MappedBoard> board_;       // null: no calls are mapped
  std::vector<kernels::GpuMemory> scratch_;  // the last is used; what is under way may use those before
  size_t scratch_bytes_ = 0;
  Given given_last_;
  std::unique_ptr<DeviceQueue> queue_;
  std::map<std::pair<const schedule::Schedule*, uint32_t>, std::vector<schedule::Turn>> turns_;  // by slices

  std::mutex mutex_;            // of all that follows, and of the communicator; taken after calls_
  std::atomic<int> wanted_{0};  // by threads other than the one below, which steps back then
  std::condition_variable given_;
  Request last_;
  uint64_t ended_ = 0;  // the same of the last one that has
  DeviceGraphs graphs_;
  std::deque<Operation> waiting_;                 // given while graphs held collectives: until the GPU begins them
  std::atomic<bool> in_graphs_{false};            // one of these two has some
  std::chrono::steady_clock::time_point active_;  // when the last one ended
  std::optional<std::chrono::steady_clock::time_point> finishing_since_;
  bool finished_ = false;  // and nothing has been given or begun since: what runs later is an error, also where others have gone meanwhile
  bool over_ = false;
  std::optional<Error> failure_;     // written once …
  std::atomic<bool> failed_{false};  // … before this
  std::thread thread_;
};

}  // namespace gyre::engine
