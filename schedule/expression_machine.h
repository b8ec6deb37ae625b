// The Machine (run.h) with expressions in place of data: every rank's memory, and all messages ever sent. Private to meaning.cpp.
#pragma once
#include "schedule/expression.h"
#include "schedule/unbounded.h"
#include "schedule/verify.h"

namespace gyre::schedule {

class ExpressionMachine : public Unbounded<ExpressionMachine> {
 public:
  using Id = Expressions::Id;

  ExpressionMachine(const Schedule&, const Wiring&, bool in_place);

  /// Runs a channel to its end; what is wrong, or empty.
  std::string run(uint32_t channel);
  /// Of all channels, after they ran.
  std::string left_over() const;
  std::vector<std::vector<Fact>> facts() const;
  /// What of a step has no room for the form of its values (verify.h), in words; empty: all has.
  const std::string& formless() const { return formless_; }
  bool sends_partial() const { return sends_partial_; }

  const Schedule& schedule() const { return schedule_; }
  Expressions& expressions() { return expressions_; }
  Id output(Rank rank, uint32_t chunk) const { return memory_[first_cell(rank) + cells_.of(rank, Buffer::output, chunk)] & ~raw; }
  /// Words for a reduction that must not be, and why.
  std::string refuse(Id reduction, std::string_view why) const;

  // For advance(), of the program that runs.
  void take(Rank peer);
  void take(const Chunks&);
  void put(const Chunks&);
  void put(Rank peer);
  void finish(const Step&);

 private:
  struct Message {
    size_t first = 0;  // of its values
    uint32_t count = 0;
  };
  // An input that its rank has not changed. Where input and output share memory, what was written is the output's, and a step that
  // names the input would take it for raw: an average's scaling depends on that.
  static constexpr Id raw = Id{1} << 31;

  uint32_t number() const { return wiring_.first_step(running_) + step_; }  // of the step, among those of all programs
  void add(const Id* values, size_t count);
  void reduce();
  Form form_of(Id id) const { return expressions_.complete(id) ? Form::whole : expressions_.leaf_of(id) >= 0 ? Form::part : Form::partial; }
  void note_form(const Step&);
  bool crosses(Chunks read, Chunks written) const;
  size_t first_cell(Rank rank) const { return static_cast<size_t>(rank) * cells_.count(); }
  void formless(std::string_view what) {
    if (formless_.empty()) formless_ = fmt::format("{} {}", where(schedule_, *program_, step_), what);
  }
  template <class... Args>
  void fault(fmt::format_string<Args...> format, Args&&... args) {
    if (!fault_.empty()) return;
    fault_ = where(schedule_, *program_, step_) + ' ' + fmt::format(format, std::forward<Args>(args)...);
  }

  Layout layout_;
  Cells cells_;
  bool reduces_;
  Expressions expressions_;
  std::vector<Id> memory_;
  std::vector<uint32_t> place_;  // [chunk]: in its block
  std::vector<Message> messages_;
  std::vector<Id> values_;        // of all messages
  std::vector<Message> results_;  // [step]: of steps that reduce
  std::vector<Id> result_values_;

  std::vector<Fact> forms_;  // [step]: of reductions
  std::string formless_;
  bool sends_partial_ = false;

  // of the step that is being tried
  std::vector<Id> taken_;  // of all sources, one after the other
  uint32_t sources_ = 0;
  std::vector<Id> value_;
  std::vector<Id> local_;
  Message sent_;
};

}  // namespace gyre::schedule
