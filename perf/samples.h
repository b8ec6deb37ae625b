// Measured times of candidates, as data: a JSON object per line, the first about the machine. `gyre-perf measure` writes them; fit.h and
// regret.h read them, so that what was concluded can be concluded again.
#pragma once
#include <string>
#include <tuple>
#include <vector>

#include "base/config.h"
#include "base/result.h"
#include "base/types.h"

namespace gyre::perf {

/// A collective of floats, and of their sum where it reduces, by one schedule at one size, with root 0.
struct Sample {
  int ranks = 1;
  std::string transport;  ///< inside a node, and between nodes where it alone was to join ranks
  int processors = 1;     ///< that the ranks of a node shared
  std::string family;
  std::vector<int> grid;
  size_t bytes = 0;        ///< of the call, as benchmarks count
  std::vector<double> us;  ///< per round, of a call
  Collective collective = Collective::all_reduce;
  int nodes = 1;          ///< with equally many ranks each, whose numbers follow each other
  std::string network{};  ///< what joined ranks of different nodes; empty: there are none

  double median_us() const;
  size_t block_bytes() const;  ///< of a block (schedule/layout.h)
  int ranks_per_node() const { return ranks / nodes; }
  bool crowded() const { return processors < ranks_per_node(); }
  /// Equal for candidates for the same call.
  auto call() const { return std::tuple(collective, ranks, nodes, transport, network, bytes); }
};

/// Which candidates of one size a round is for, counted from 0: all in the first five, then those that were not slower each time than the
/// best's median.
std::vector<size_t> in_round(const std::vector<Sample>& of_one_size, int round);

/// Adds them to a file; `command` and the options that are set are kept beside them. Error: the file can't be written.
Status append_samples(const std::string& path, const std::string& command, const Config&, const std::vector<Sample>&);
/// Error: a file that can't be read, or a line in it that is no sample, by number.
Result<std::vector<Sample>> read_samples(const std::vector<std::string>& paths);

}  // namespace gyre::perf
