// What the calls of a communicator run, by messages or directly: made once for each call, of schedules that are proven first, and kept. It
// follows from what all ranks know, so that they choose alike. It must not know of connections and buffers.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/choice.h"
#include "engine/direct_plan.h"
#include "engine/plan.h"
#include "topo/direct_cost.h"
#include "transport/board.h"

namespace gyre::engine {

/// An algorithm, or "auto", and the grid of ranks for it; empty: none.
struct Preference {
  std::string algorithm;
  std::vector<int> grid;
};

/// What a call runs: by messages, or directly, or directly if buffers allow it and else by messages.
struct Planned : std::enable_shared_from_this<Planned> {
  Planned(const Call& c, const Extent& e, std::optional<DirectPlan> d) : call(c), extent(e), direct(std::move(d)) {}

  Call call;
  Extent extent;  ///< of this rank
  std::optional<DirectPlan> direct;
  std::unique_ptr<Plan> messages;
  Excluded excluded;   ///< what was found not to be the schedule of its messages
  bool named = false;  ///< to the bootstrap

  bool staged() const { return direct && direct->staged; }
  const DirectForm* form(BufferKind kind) const { return direct ? direct->form(kind) : nullptr; }
  /// As Communicator's.
  std::string_view algorithm(BufferKind) const;
  /// Calls find out whether that, read straight, is faster than copies.
  bool contested(BufferKind kind) const { return direct && direct->contested && kind == BufferKind::ordinary; }
  /// The form by which these copy; null: messages do.
  const DirectForm* copies() const { return direct->form(BufferKind::ordinary, false); }
  /// What of these runs, for people.
  std::string counted(BufferKind) const;
  /// Messages run it only where ranks have buffers of different kinds: not worth playing candidates for.
  bool rarely_by_messages() const { return staged() || (direct && direct->bounced); }
  uint64_t hash() const { return named_directly() ? direct->hash : messages->hash(); }
  const std::string& text() const { return named_directly() ? direct->text : messages->text(); }

 private:
  bool named_directly() const { return rarely_by_messages() || (direct && direct->read); }
};

class Planner {
 public:
  /// `channels`: on which ranks are connected. `board`: null: not all ranks are on one host. `contests`: calls that can be read straight
  /// find out whether that is the faster way.
  Planner(Rank rank, Circumstances circumstances, transport::Slots slots, size_t channels, const transport::Board* board, bool contests)
      : rank_(rank),
        ranks_(circumstances.ranks),
        slots_(slots),
        channels_(channels),
        direct_(board != nullptr),
        contests_(contests),
        circumstances_(std::move(circumstances)),
        forms_(rank, ranks_, circumstances_.costs.direct_bounds.value_or(topo::DirectBounds()),
               board != nullptr ? board->bounce_bytes() : 0, board != nullptr && !board->attached().empty()) {}

  void prefer(const Preference&);
  /// From now on nothing runs directly: the buffers are none that a host reaches.
  void only_by_messages() { direct_ = false, plans_.clear(); }
  /// The same, on GPUs: `gpus` as on_gpus() takes it; `ways`: as Circumstances has them. Nothing has been planned yet.
  void only_on_gpus(const topo::Costs& gpus, const OnGpus& ways) {
    only_by_messages();
    circumstances_.costs = on_gpus(circumstances_.costs, gpus);
    circumstances_.ways = ways;
  }
  /// Memory for the messages that a rank sends, which each schedule divides among the connections that it has a rank send on.
  struct Room {
    transport::Slots slots;  ///< of a connection, at most
    size_t bytes = 0;        ///< of a rank, on all connections together
    bool received = false;   ///< there is as much for those that it receives
  };
  /// The same, and messages go by such memory and not by the transport's slots. Nothing has been planned yet.
  void only_by_messages(const Room&);
  /// Whether a plan of messages runs well, alike on all ranks.
  using Fits = std::function<bool(const Plan&)>;
  /// A plan that does not has messages as long as the room allows; if it still does not, `auto` takes another, as long as one does that is
  /// predicted to take no more than `worth` times as long. Where none is, the first.
  void prefer_fitting(Fits fits, double worth) { fits_ = std::move(fits), worth_fitting_ = worth, plans_.clear(); }
  /// Valid until the next call of this; shared_from_this() keeps it. Error: also a call that is not valid.
  Result<Planned*> planned(const Call&);
  /// The same, at once, where the last one was such a call; else null.
  Planned* latest(const Call& call) const { return !plans_.empty() && plans_.front()->call == call ? plans_.front().get() : nullptr; }
  /// These say of the next such call what Communicator's of the same name do.
  Result<const Plan*> plan(const Call&);
  Result<std::string> algorithm(const Call&, BufferKind);
  Result<double> predicted_us(const Call&, BufferKind);
  std::string explain(const Call&, BufferKind);
  /// What runs, at what predicted time, and beside a direct form the best by messages; for people.
  std::string outcome(const Planned&, BufferKind);

 private:
  Result<std::shared_ptr<const Proven>> proven(const Choice&);
  struct CutPlan {
    Plan plan;
    bool fits;  ///< as prefer_fitting() has it
  };
  Result<CutPlan> cut(std::shared_ptr<const Proven>, const Call&) const;
  void say_instead(const Call&, const Choice&);
  Status plan_messages(Planned&);
  Result<std::optional<DirectPlan>> directly(const Call&);
  Result<topo::Price> price(const DirectForm&, const DirectPlan&, BufferKind) const;
  std::vector<topo::DirectCandidate> direct_candidates(const Planned&, BufferKind) const;
  static std::string_view form_name(const DirectForm&, const DirectPlan&, BufferKind);
  std::string by_messages(const Planned&);
  /// By which way its messages go; empty: there are none, or by the ranks' numbers.
  std::string way(const Planned&, BufferKind) const;

  Rank rank_;
  int ranks_;
  transport::Slots slots_;
  Room room_{};  ///< no bytes: every connection has its slots
  Fits fits_;
  double worth_fitting_ = 1;
  size_t channels_;
  bool direct_;
  bool contests_;
  Circumstances circumstances_;
  topo::Profiles profiles_;
  DirectForms forms_;
  std::map<std::string, std::shared_ptr<const Proven>, std::less<>> schedules_;  // by family and shape; kept, since machines know them
  Excluded unfit_;                                                               // in the order of hosts, or by relays
  std::vector<std::shared_ptr<Planned>> plans_;                                  // the latest first
  std::vector<std::string> said_;                                                // that another algorithm runs than was named
};

}  // namespace gyre::engine
