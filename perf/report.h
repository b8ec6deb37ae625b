// A sweep's output for people: nccl-tests' columns, its closing lines, a progress line for a terminal. Keeps no rows: there may be
// millions.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perf/sweep.h"

namespace gyre::perf {

/// Columns beside those that nccl-tests has always.
struct Columns {
  bool predicted = false;
  bool percentiles = false;  ///< of iterations, as -I asks
  bool timestamp = false;    ///< as -S asks
};

/// The table's head, three lines, and one of its rows.
std::string table_head(const Columns&);
std::string table_row(const Row&, const Columns&);

/// What a sweep comes to; of any number of rows.
struct Totals {
  uint64_t rows = 0;
  uint64_t wrong = 0;  ///< elements
  bool checked = false;
  double sum_busbw = 0;
  uint64_t ways = 0;  ///< out of place, and in place where there is that

  void add(const Row&);
  double average_busbw() const { return ways == 0 ? 0 : sum_busbw / static_cast<double>(ways); }
};

/// Prints to stdout what rank 0 shows: call in this order.
class Report {
 public:
  /// `about`: lines put above the table, without the leading "# ".
  void head(const std::vector<std::string>& about, const Columns&);
  /// On stderr, where that is a terminal and the sweep takes long; `of` is 0 where nobody knows how many there will be.
  void progress(size_t bytes, uint64_t done, uint64_t of);
  void row(const Row&);
  /// Lines about the row before, or about the sweep, as comments.
  void note(const std::string& lines);
  /// What all comes to: of `benchmark`, and whether its bandwidth is what was wanted, where some was.
  void tail(std::string_view benchmark, std::optional<double> wanted_busbw);

  const Totals& totals() const { return totals_; }

 private:
  void clear_progress();

  Totals totals_;
  Columns columns_;
  bool progress_shown_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace gyre::perf
