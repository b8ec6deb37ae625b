// A limit on the time of a sweep, which all ranks reach at the same point: rank 0 looks at its clock and tells the others. Nothing is asked
// or told where there is no limit.
#pragma once
#include <chrono>
#include <optional>

#include "transport/bootstrap.h"

namespace gyre::perf {

class TimeLimit {
 public:
  /// None: without end. All ranks must have one, or none.
  explicit TimeLimit(std::optional<double> seconds = std::nullopt);

  bool limited() const { return end_.has_value(); }
  /// Whether it has been reached, as rank 0 said when the ranks met last.
  bool reached() const { return reached_; }
  /// Meets the others; false once the limit is reached. Called by all ranks.
  Result<bool> goes_on(transport::Bootstrap&);
  /// How many of `left` iterations to make before the ranks meet again: none once the limit is reached; `done` took `seconds` here.
  /// Without a limit all. Called by all ranks, to which rank 0's answer is given.
  Result<uint64_t> next(transport::Bootstrap&, uint64_t left, uint64_t done, double seconds);

 private:
  double remaining() const;

  std::optional<std::chrono::steady_clock::time_point> end_;
  bool reached_ = false;
};

}  // namespace gyre::perf
