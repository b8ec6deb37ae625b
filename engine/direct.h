// Collectives between ranks of one host that read and write each other's memory (schedule/direct.h), meeting on a board. Each rank shows
// where its buffers lie, or a copy of its input, where that fits. Then all choose alike.
//
// Mapped, when everybody's buffers lie in shared heaps: each rank does its share of the work on everybody's memory, and waits until all
// have. Staged, when everybody has shown a copy: each rank reads the others' and writes its own output. Bounced, when nobody's buffers lie
// there and inputs are larger than what is staged: as mapped, piece by piece, on copies of what others read of it. Attached, when not
// everybody's do, or of reductions nobody's, and that is the faster way: a rank reads the others' buffers by system calls, and waits until
// all have; where one can't, all decline after that. A reduction may have written over its input by then, so that ranks say before whether
// theirs can be read, and go on bounced where not. Else all decline, and messages carry the call; those outside heaps have copied in vain
// then.
//
// Used by one thread; a run allocates nothing, but for memory that a call names for the first time. It must not know how to wait.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/away.h"
#include "engine/contest.h"
#include "engine/direct_memory.h"
#include "engine/direct_plan.h"
#include "engine/passes.h"
#include "engine/settled.h"
#include "engine/work.h"
#include "transport/board.h"

namespace gyre::engine {

class Direct final : public Work {
 public:
  /// `spins`: how often a rank looks for its peers before it lets others be looked after.
  Direct(Rank rank, std::unique_ptr<transport::Board> board, int spins, Away away);

  /// Groups that run between the collectives; it must outlive this.
  void between(const Work& groups) { groups_ = &groups; }
  /// `contest`: says which way this call goes where it may be read straight, and hears of it; null: straight.
  void bind(const DirectPlan&, const Identity&, const Buffers&, Contest* contest = nullptr);
  /// After a run: nothing was done that counts, on any rank; inputs are as they were.
  bool declined() const { return declined_; }
  /// After a run that failed: no other rank touches this rank's memory any more, as far as it says so.
  bool released();
  /// After a run that failed: a rank that comes to it late is never done with it, and so does not take for its result what it reads here
  /// from now on.
  void take_back();

  Moved move() override;
  Rank stranger() const override { return stranger_; }
  std::optional<Error> wrong() const override { return wrong_; }
  std::vector<Rank> awaited() const override;
  Rank awaits_only() const override;
  std::string where() const override;
  Description description() const override { return {call_.number, call_.plan, *call_.text}; }
  std::vector<transport::Pair> pairs() const override { return groups_ != nullptr ? groups_->pairs() : std::vector<transport::Pair>(); }

 private:
  enum class Stage : uint8_t { show, meet, leave, done };

  Moved move_staged();
  bool show();
  void show_places(transport::Board::Line&);
  void show_input(std::byte* to) const;
  bool meet();
  bool leave();
  template <class Ready>
  bool soon(Ready&& ready) const;
  bool look(Rank peer, const transport::Board::Line&);
  bool decide();
  bool reach();
  bool run_passes(const std::vector<RankMemory>& memory);
  void begin_contest();
  bool shows_late();
  bool may_be_read(const std::byte* data, size_t bytes);
  bool copies_away() const;
  void say_unreadable(const Error&);
  std::byte* bounce(Rank rank, size_t piece) const;
  size_t piece_offset(size_t piece) const;
  void show_piece(size_t piece);
  bool run_piece();
  bool take_piece();
  void attach();
  Status map(Rank peer);
  const Extent& extent(Rank rank) const { return plan_->extents[static_cast<size_t>(rank)]; }

  Rank rank_;
  std::unique_ptr<transport::Board> board_;
  int spins_;
  Away away_;
  std::vector<Rank> others_;
  DirectMemory memory_;
  Passes passes_;
  const Work* groups_ = nullptr;
  uint64_t sequence_ = 0;  // on the board, of a call, or of a piece of it

  const DirectPlan* plan_ = nullptr;
  const DirectForm* form_ = nullptr;  // that was chosen
  Identity call_;
  Stage stage_ = Stage::done;
  const std::vector<Rank>* awaited_ = nullptr;
  size_t next_ = 0;  // of those
  Contest* contest_ = nullptr;
  bool straight_ = false, stages_ = false;  // what ordinary buffers are
  bool declined_ = false, bounced_ = false, attached_ = false, refuses_ = false, said_unreadable_ = false;
  bool late_ = false;  // the first piece is shown after all have met
  RankMemory own_;
  size_t piece_ = 0;  // bounced: that is under way
  bool all_in_heaps_ = true, any_in_heap_ = false, any_unreadable_ = false, any_in_place_ = false;
  Rank stranger_ = -1;
  std::optional<Error> wrong_;
  std::vector<Shown> shown_;           // by rank
  std::vector<RankMemory> reachable_;  // by rank
  Settled settled_;
  const Settled::Call* before_ = nullptr;  // that this one repeats as far as seen; null: none
};

}  // namespace gyre::engine
