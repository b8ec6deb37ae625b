// The ranks of a sweep as one of them sees them: all, joined, and where they are split the group in which it measures.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "perf/report.h"
#include "perf/split.h"

namespace gyre::perf {

class SweepRanks {
 public:
  /// Joins, with so many communicators. Called by all ranks. Error: also where ranks are not split alike.
  static Result<SweepRanks> join(const transport::Rendezvous&, const Config&, int communicators, const std::optional<Split>&);

  /// What this rank measures on: of its group.
  Communicators communicators() const { return groups_.empty() ? all_ : split_; }
  transport::Bootstrap& everybody() const { return all_.front()->bootstrap(); }
  bool split() const { return !groups_.empty(); }
  const Groups& groups() const { return groups_; }  ///< empty: all are one
  /// As Communicator::abort, of all.
  void abort(const std::string& why) const;

  // Called by all ranks:

  /// What each group's sweep came to, a line each; adds what was wrong in the others' to `mine`.
  Result<std::string> totals_of_groups(Totals& mine) const;
  /// The most that any rank has had resident.
  Result<std::string> peak_memory() const;
  /// Nobody leaves while others may still need it.
  Status leave() const;

 private:
  using Owned = std::vector<std::unique_ptr<engine::Communicator>>;

  Owned all_;
  Owned split_;
  Groups groups_;
};

}  // namespace gyre::perf
