// A communicator: the ranks of a job, joined, and the collectives they run together. Used by one thread at a time. After an error that
// concerns the job (not a wrong argument) it stays broken, and every call returns that error.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/config.h"
#include "engine/batch.h"
#include "engine/choice.h"
#include "engine/connections.h"
#include "engine/direct.h"
#include "engine/executor.h"
#include "engine/machines.h"

namespace gyre::engine {

/// An algorithm, or "auto", and the grid of ranks for it; empty: none.
struct Preference {
  std::string algorithm;
  std::vector<int> grid;
};

class Communicator {
 public:
  /// Joins the other ranks and connects to them; blocks until all are there, at most the rendezvous' timeout.
  static Result<std::unique_ptr<Communicator>> create(const transport::Rendezvous&, const Config&);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Rank rank() const { return bootstrap_->rank(); }
  int size() const { return bootstrap_->size(); }
  transport::Bootstrap& bootstrap() { return *bootstrap_; }
  /// "shm", "verbs", "ucx" or "tcp" by rank; empty for this rank.
  const std::vector<std::string>& transports() const { return connections_.transports; }

  /// Runs a collective, which all ranks call alike. Buffers are NCCL's (schedule/layout.h), and so is what in place means; a buffer that
  /// this rank does not have is not looked at. Blocks until the result is there and the buffers are free. Same call, same number of
  /// ranks, buffers of the same kind (transport::SharedHeap's or not): the same bits in every run. After an error that concerns the job
  /// other ranks may touch buffers of the shared heap until they have ended.
  Status run(const Call&, const void* input, void* output);
  /// output = the reduction of all ranks' `count` elements at input. Same bits on every rank.
  Status all_reduce(const void* input, void* output, size_t count, DataType type, ReduceOp op) {
    return run({Collective::all_reduce, count, type, op, 0}, input, output);
  }
  /// Runs a group of sends and receives, which among two ranks and in one direction are matched by order, within and across groups. All
  /// make progress together. Those to and from this rank itself are matched within the group. Blocks until what arrives is there and the
  /// buffers are free. A count or type that differs is an error on both ranks; a sender whose data is out already learns of it by its
  /// next call.
  Status exchange(std::span<const Transfer>);
  /// What later calls run, as if GYRE_ALGORITHM and GYRE_GRID said so; on all ranks alike.
  void prefer(const Preference&);
  /// The schedule of messages that the next such call would run.
  Result<const Plan*> plan(const Call&);
  /// The family that the next such call would run, or that its direct form stands for: "one_shot" staged, "two_shot" mapped.
  Result<std::string> algorithm(const Call&, BufferKind = BufferKind::ordinary);
  /// What that costs by the constants, in microseconds. Error: the constants have no price of a direct form.
  Result<double> predicted_us(const Call&, BufferKind = BufferKind::ordinary);
  /// A table of what the call can be chosen from: predicted times, or why not; and which direct form runs in place of them, if one does.
  std::string explain(const Call&, BufferKind = BufferKind::ordinary);

 private:
  Communicator(std::unique_ptr<transport::Bootstrap>, Connections, const Config&, Circumstances, bool crowded,
               std::unique_ptr<transport::Board>);

  /// What a call runs: by messages, or directly, or directly if buffers allow it and else by messages.
  struct Planned {
    Call call;
    std::unique_ptr<Plan> messages;
    std::optional<DirectPlan> direct;

    bool staged() const { return direct && direct->staged; }
    const DirectForm* form(BufferKind kind) const { return direct ? direct->form(kind) : nullptr; }
    uint64_t hash() const { return staged() ? direct->hash : messages->hash(); }
    const std::string& text() const { return staged() ? direct->text : messages->text(); }
  };

  Result<std::shared_ptr<const Proven>> proven(const Call&);
  Result<std::unique_ptr<Plan>> by_messages(const Call&);
  Result<std::optional<DirectPlan>> directly(const Call&);
  Result<Planned*> planned(const Call&);
  Result<topo::Price> price(const DirectForm&, const Call&) const;
  std::vector<topo::DirectCandidate> direct_candidates(const Planned&, BufferKind) const;
  Error refused(uint64_t number, Error);
  void give_up(const Error&);

  std::unique_ptr<transport::Bootstrap> bootstrap_;
  Connections connections_;
  transport::Slots slots_;
  Circumstances circumstances_;
  topo::Profiles profiles_;
  DirectForms forms_;
  Batch batch_;
  Machines machines_;
  std::unique_ptr<Direct> direct_;  // null: not all ranks are on this host
  Executor executor_;
  std::map<std::string, std::shared_ptr<const Proven>, std::less<>> schedules_;  // by family and shape; kept, since machines know them
  std::vector<std::unique_ptr<Planned>> plans_;                                  // the latest first
  std::vector<std::string> said_;                                                // that another algorithm runs than was named
  uint64_t calls_ = 0;
  uint64_t past_ = 0;  // what those calls were
  std::optional<Error> broken_;
};

}  // namespace gyre::engine
