// A sweep of one benchmark over sizes, types, operations and roots, as nccl-tests does it: every result is checked, then timed.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "perf/benchmark.h"
#include "perf/measure.h"

namespace gyre::perf {

/// What nccl-tests' flags of the same letter say.
struct SweepOptions {
  const Benchmark* benchmark = &benchmark_of(Collective::all_reduce);
  size_t min_bytes = 8;                            // -b
  size_t max_bytes = 64 << 20;                     // -e
  size_t step_factor = 2;                          // -f
  size_t step_bytes = 0;                           // -i; 0: by factor
  Timing timing;                                   // -n -w -m -z -a -I -K
  int check = 1;                                   // -c: how many calls are checked; 0: none
  std::vector<DataType> types{DataType::float32};  // -d
  std::vector<ReduceOp> ops{ReduceOp::sum};        // -o; one where nothing is reduced
  std::optional<Rank> root = 0;                    // -r; none: all; 0 where there is no root
  int cycles = 1;                                  // -N; 0: without end
  int unalign = 0;                                 // -u: elements between the beginning of a page and a buffer
  int local_register = 0;                          // -R; not 0: buffers of the heap that the ranks of a host share
  int communicators = 1;                           // --communicators
  std::optional<double> limit_seconds;             // --time-limit

  engine::BufferKind buffers() const { return local_register == 0 ? engine::BufferKind::ordinary : engine::BufferKind::shared_heap; }
};

struct Row {
  Case call;
  size_t asked_bytes = 0;  ///< by the flags; the call has as many whole elements as these hold
  std::string algorithm;
  Measured out_of_place;
  std::optional<Measured> in_place;    ///< none where nccl-tests has none
  std::optional<double> predicted_us;  ///< none where nothing predicts
  uint64_t cycle = 0;
  bool cut = false;  ///< it has less than was asked for: the time limit came first

  uint64_t wrong() const { return out_of_place.wrong + (in_place ? in_place->wrong : 0); }
  /// (predicted - measured) / measured, out of place.
  std::optional<double> prediction_error() const;
};

/// The sizes in bytes, ascending. Error: none, or too many.
Result<std::vector<size_t>> sizes_of(const SweepOptions&);
/// Error: there is no such rank.
Result<std::vector<Rank>> roots_of(const SweepOptions&, int ranks);
/// How many rows a cycle of the sweep has.
Result<size_t> rows_of(const SweepOptions&, int ranks);

/// What a sweep reports while it runs, on every rank.
struct SweepEvents {
  std::function<Status(size_t bytes)> on_start;               ///< as below
  std::function<Status(const Row&)> on_row;                   ///< an error ends the sweep
  std::function<std::optional<double>(const Case&)> predict;  ///< microseconds; may be empty
};

/// Communicators of the same ranks, one at least; with nothing in common.
using Communicators = std::span<const std::unique_ptr<engine::Communicator>>;

/// Runs the sweep, on all communicators in turn; called by all ranks. How many rows it has: all, or as many as the time limit let.
Result<uint64_t> sweep(Communicators, const SweepOptions&, const SweepEvents&);

/// Error where ranks would not make the same number of calls: which rank differs in what. Called by all ranks.
Status compare_options(transport::Bootstrap&, const SweepOptions&);

}  // namespace gyre::perf
