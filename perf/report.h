// A sweep's output: nccl-tests' columns for people, JSON for programs, a progress line for a terminal.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "perf/sweep.h"

namespace gyre::perf {

/// Prints to stdout what rank 0 shows: call in this order.
class Report {
 public:
  /// `about`: lines put above the table, without the leading "# ".
  void head(const std::vector<std::string>& about);
  void progress(size_t bytes, size_t done, size_t of);  // on stderr, where that is a terminal and the sweep takes long
  void row(const Row&);
  /// Returns the number of wrong elements.
  uint64_t tail();

  const std::vector<Row>& rows() const { return rows_; }

 private:
  void clear_progress();

  std::vector<Row> rows_;
  bool progress_shown_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Writes rows with machine, command and versions. Error: the file can't be written.
Status write_json(const std::string& path, const std::string& command, int ranks, const std::vector<std::string>& transports,
                  const std::vector<Row>&);

}  // namespace gyre::perf
