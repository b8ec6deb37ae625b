// A sweep's output: nccl-tests' columns for people, JSON for programs, a progress line for a terminal.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "perf/sweep.h"

namespace gyre::perf {

/// The table's head, three lines, and one of its rows. `predicts`: with columns for what was predicted.
std::string table_head(bool predicts);
std::string table_row(const Row&, bool predicts);

/// Prints to stdout what rank 0 shows: call in this order.
class Report {
 public:
  /// `about`: lines put above the table, without the leading "# ". `predicts`: rows have a predicted time, which is then shown.
  void head(const std::vector<std::string>& about, bool predicts);
  void progress(size_t bytes, size_t done, size_t of);  // on stderr, where that is a terminal and the sweep takes long
  void row(const Row&);
  /// Lines about the row before, as comments.
  void note(const std::string& lines);
  /// Returns the number of wrong elements.
  uint64_t tail();

  const std::vector<Row>& rows() const { return rows_; }

 private:
  void clear_progress();

  std::vector<Row> rows_;
  bool predicts_ = false;
  bool progress_shown_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// What holds for all rows.
struct RunFacts {
  std::string command;
  std::string_view benchmark;
  int ranks;
  std::vector<std::string> transports;
};

/// Writes rows with machine, command and versions. Error: the file can't be written.
Status write_json(const std::string& path, const RunFacts&, const std::vector<Row>&);

}  // namespace gyre::perf
