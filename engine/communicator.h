// A communicator: the ranks of a job, joined, and the collectives they run together. Used by one thread at a time. After an error that
// concerns the job (not a wrong argument) it stays broken, and every call returns that error.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "base/config.h"
#include "engine/collective_work.h"
#include "engine/connections.h"
#include "engine/executor.h"
#include "engine/explanations.h"
#include "engine/in_flight.h"
#include "engine/planner.h"
#include "topo/constants.h"
#include "transport/reunion.h"

namespace gyre::engine {

/// An operation that was begun without waiting.
struct Request {
  uint64_t number = 0;  ///< on its communicator, from 1
};
class Communicator {
 public:
  /// Joins the other ranks and connects to them; blocks until all are there, at most the rendezvous' timeout.
  static Result<std::unique_ptr<Communicator>> create(const transport::Rendezvous&, const Config&);
  /// The same of ranks that have joined and found that they want to; all of them call it.
  static Result<std::unique_ptr<Communicator>> create(std::unique_ptr<transport::Bootstrap>, const Config&);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();  ///< operations in flight end with it, here and on other ranks

  Rank rank() const { return bootstrap_->rank(); }
  int size() const { return bootstrap_->size(); }
  transport::Bootstrap& bootstrap() { return *bootstrap_; }
  /// "shm", "verbs", "ucx" or "tcp" by rank; empty for this rank.
  const std::vector<std::string>& transports() const { return connections_.transports; }

  /// Runs a collective, which all ranks call alike. Buffers are NCCL's (schedule/layout.h), and so is what in place means; a buffer that
  /// this rank does not have is not looked at. Blocks until the result is there and the buffers are free. Same call, same number of
  /// ranks, buffers of the same kind (transport::SharedHeap's or not): the same bits in every run. After an error that concerns the job
  /// other ranks may touch buffers of the shared heap until they have ended.
  /// TimeLimit: how long nothing may move while this rank waits, before that is an error on all ranks that names who and what was waited
  /// for, and by which link; none: as GYRE_DEADLINE says; 0: for ever.
  Status run(const Call&, const void* input, void* output, TimeLimit = {});
  /// output = the reduction of all ranks' `count` elements at input. Same bits on every rank.
  Status all_reduce(const void* input, void* output, size_t count, DataType type, ReduceOp op) {
    return run({Collective::all_reduce, count, type, op, 0}, input, output);
  }
  /// Runs a group of sends and receives, which among two ranks and in one direction are matched by order, within and across groups. All
  /// make progress together. Those to and from this rank itself are matched within the group. Blocks until what arrives is there and the
  /// buffers are free. A count or type that differs is an error on both ranks; a sender whose data is out already learns of it by its
  /// next call.
  Status exchange(std::span<const Transfer>, TimeLimit = {});
  /// What is wrong with such a group by itself; nothing: it can be run.
  std::optional<Error> wrong_group(std::span<const Transfer> transfers) const { return batch_.refuse(transfers); }

  /// The same without waiting: the operation is begun, and done once test() or wait() says so; until then the buffers are its. Operations
  /// run in the order in which they were begun, also with those above, which wait for all before them. They move while this process
  /// waits for anything, on any communicator, or tests.
  Result<Request> start(const Call&, const void* input, void* output, TimeLimit = {});
  Result<Request> start(std::span<const Transfer>, TimeLimit = {});
  /// The same in two steps, for work that the caller makes of the plan (device_communicator.h): what is prepared is begun, or fail()ed,
  /// before anything else is called for. It goes by messages, of which the caller knows the connections and how many are under way.
  Result<Operation> prepare(const Call&, const void* input, void* output, TimeLimit = {});
  Result<Request> begin(Operation);
  /// Called by all ranks alike, before any call. `reached`: ranks of a host reach each other's GPU memory. Constants that lack GPUs take
  /// those compiled in.
  Status only_on_gpus(bool reached, const OnGpus& ways = {});
  void only_by_messages() { planner_.only_by_messages(); }
  void only_by_messages(const Planner::Room& room) { planner_.only_by_messages(room); }
  void prefer_fitting(Planner::Fits fits, double worth) { planner_.prefer_fitting(std::move(fits), worth); }
  const Connections& connections() const { return connections_; }
  Connections& connections() { return connections_; }
  const transport::Slots& slots() const { return slots_; }
  /// Nobody has said how long messages are to be, nor what memory they may take.
  bool slots_by_default() const;
  /// What each rank gives, by rank; called by all.
  Result<std::vector<std::string>> all_gather(std::string_view mine);
  /// True: it is done. Error: it can't be done any more.
  Result<bool> test(Request);
  Status wait(Request);

  /// Ends what runs, here and on all other ranks, with an error that says so; every later call returns it. From any thread.
  void abort(std::string_view why);
  /// The same for this error, from the thread that uses this.
  void fail(const Error&);
  /// Error: what every call will return.
  Status lives();

  /// Called by all ranks, each with a color and a key: those of a color form a communicator of their own, numbered by key and, of equal
  /// keys, by rank here. A negative color: none, and null. Waits for all operations in flight. What was preferred is not handed on.
  /// Where a rank of any color ends before those of this one have met, that is an error.
  /// `cancelled`: as in transport::Rendezvous, also in the next. `gpu`: on which this rank's buffers will be. Where all ranks of a color
  /// know theirs, messages go the ways that the links between these suggest (gpu_channels.h).
  Result<std::unique_ptr<Communicator>> split(int color, int key, const std::atomic<bool>* cancelled = nullptr,
                                              const std::optional<topo::GpuRow>& gpu = {});
  /// A communicator of the other ranks, in their order here; called by all of them, with the same list. This one may be broken, and stays
  /// as it is.
  Result<std::unique_ptr<Communicator>> shrink(std::span<const Rank> without, const std::atomic<bool>* cancelled = nullptr);
  /// The same without the ranks whose process, or communicator, has ended. One that is only stopped is waited for, and is an error. Where
  /// a network has parted, both sides go on, each without the other.
  Result<std::unique_ptr<Communicator>> shrink();

  /// What later calls run, as if GYRE_ALGORITHM and GYRE_GRID said so; on all ranks alike.
  void prefer(const Preference& preference) { planner_.prefer(preference); }
  /// The schedule of messages that the next such call would run.
  Result<const Plan*> plan(const Call& call) { return planner_.plan(call); }
  /// The family that the next such call would run, or that its direct form stands for: "one_shot" staged, "two_shot" mapped, also on
  /// copies, and read straight.
  Result<std::string> algorithm(const Call& call, BufferKind kind = BufferKind::ordinary) { return planner_.algorithm(call, kind); }
  /// What that costs by the constants, in microseconds. Error: the constants have no price of a direct form.
  Result<double> predicted_us(const Call& call, BufferKind kind = BufferKind::ordinary) { return planner_.predicted_us(call, kind); }
  /// A table of what the call can be chosen from: predicted times, or why not; and which direct form runs in place of them, if one does.
  std::string explain(const Call& call, BufferKind kind = BufferKind::ordinary) { return planner_.explain(call, kind); }

 private:
  /// What ranks that have joined have agreed on and made.
  struct Formed {
    std::unique_ptr<transport::Bootstrap> bootstrap;
    Config given;   // as the user
    Config config;  // as suits these ranks
    std::shared_ptr<const topo::ConstantsText> constants;
    Circumstances circumstances;
    transport::Reunion reunion;
    Connections connections;
    std::unique_ptr<transport::Doorbell> doorbell;
    std::unique_ptr<transport::Board> board;
    bool crowded;
    bool contests;  // CollectiveWork's
    Away away;
  };
  explicit Communicator(Formed);
  /// `constants`: of the communicator whose ranks these are; null: they are read.
  static Result<std::unique_ptr<Communicator>> form(std::unique_ptr<transport::Bootstrap>, const Config&,
                                                    std::shared_ptr<const topo::ConstantsText> constants = nullptr,
                                                    const std::optional<topo::GpuRow>& gpu = {});
  Result<std::unique_ptr<Communicator>> among(const std::vector<Rank>& members, const transport::Rendezvous&,
                                              const std::optional<topo::GpuRow>& gpu = {}) const;
  std::chrono::milliseconds start_limit() const { return std::chrono::seconds(*given_.timeout); }

  /// Makes the next call of all ranks.
  Result<Planned*> next_call(const Call&, const Buffers&);
  Identity identity(const Planned&) const;  // of the call made last
  TimeLimit limited(TimeLimit) const;
  std::optional<Error> broken();
  Status run(Work&);
  Error no_request(Request) const;
  Request start(Operation);
  Result<bool> step(Request);
  Error refused(Error group);
  Error refused(uint64_t number, Error);
  Error give_up(const Error&);

  std::unique_ptr<transport::Bootstrap> bootstrap_;
  Config given_;
  std::shared_ptr<const topo::ConstantsText> constants_;  // those that are made of its ranks go by it, too
  transport::Reunion reunion_;
  std::unique_ptr<transport::Doorbell> doorbell_;
  Connections connections_;
  transport::Slots slots_;
  Planner planner_;
  std::unique_ptr<Explanations> explanations_;  // null: nobody asks
  Batch batch_;
  Waiter waiter_;
  CollectiveWork collective_;
  Executor executor_;
  InFlight in_flight_;
  std::chrono::milliseconds time_limit_;  // 0: none
  uint64_t seen_ended_ = 0;               // of in_flight_, by the executor
  uint64_t calls_ = 0;
  uint64_t past_ = 0;  // what those calls were
  std::optional<Error> broken_;
};

}  // namespace gyre::engine
