// Measured times of candidates, as data: a JSON object per line, the first about the machine. `gyre-perf measure` writes them; fit.h and
// regret.h read them, so that what was concluded can be concluded again.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace gyre::perf {

/// An all-reduce of float sums by one schedule at one size.
struct Sample {
  int ranks = 1;
  std::string transport;
  int processors = 1;  ///< that the ranks shared
  std::string family;
  std::vector<int> grid;
  size_t bytes = 0;
  std::vector<double> us;  ///< per round, of a call

  double median_us() const;
};

/// Adds them to a file; `command` is kept beside them. Error: the file can't be written.
Status append_samples(const std::string& path, const std::string& command, const std::vector<Sample>&);
/// Error: a file that can't be read, or a line in it that is no sample, by number.
Result<std::vector<Sample>> read_samples(const std::vector<std::string>& paths);

}  // namespace gyre::perf
