// A sweep of one collective over sizes, types and operations, as nccl-tests does it: every result is checked, then timed.
#pragma once
#include <string>
#include <vector>

#include "engine/communicator.h"

namespace gyre::perf {

/// What nccl-tests' flags of the same letter say.
struct SweepOptions {
  size_t min_bytes = 8;                            // -b
  size_t max_bytes = 64 << 20;                     // -e
  size_t step_factor = 2;                          // -f
  size_t step_bytes = 0;                           // -i; 0: by factor
  int iterations = 20;                             // -n
  int warmup = 5;                                  // -w
  int check = 1;                                   // -c: how many calls are checked; 0: none
  std::vector<DataType> types{DataType::float32};  // -d
  std::vector<ReduceOp> ops{ReduceOp::sum};        // -o
};

/// One way to call: out of place or in place.
struct Measured {
  double time_us = 0;  ///< of a call, averaged over iterations and ranks
  double algbw = 0;    ///< GB/s: bytes / time
  double busbw = 0;    ///< GB/s: algbw x 2(n-1)/n for an all-reduce
  uint64_t wrong = 0;  ///< elements, over all ranks
  bool checked = false;
};

struct Row {
  size_t bytes = 0;
  size_t count = 0;
  DataType type{};
  ReduceOp op{};
  std::string algorithm;
  Measured out_of_place;
  Measured in_place;
};

/// The sizes in bytes, ascending. Error: none, or too many.
Result<std::vector<size_t>> sizes_of(const SweepOptions&);

/// Runs the sweep; called by all ranks. `on_row` is called on every rank after each row, `on_start` before it.
template <class OnStart, class OnRow>
Status sweep(engine::Communicator&, const SweepOptions&, OnStart on_start, OnRow on_row);

/// Error where ranks would not make the same number of calls: which rank differs in what. Called by all ranks.
Status compare_options(transport::Bootstrap&, const SweepOptions&);

/// Host memory for a sweep: page-aligned, zeros.
class SweepBuffer {
 public:
  static Result<SweepBuffer> allocate(size_t bytes);
  SweepBuffer(SweepBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  SweepBuffer& operator=(SweepBuffer&&) = delete;
  ~SweepBuffer();
  void* data() const { return data_; }

 private:
  SweepBuffer(void* data, size_t bytes) : data_(data), bytes_(bytes) {}
  void* data_;
  size_t bytes_;
};

Result<Row> measure(engine::Communicator&, const SweepOptions&, size_t bytes, DataType, ReduceOp, void* input, void* output);

template <class OnStart, class OnRow>
Status sweep(engine::Communicator& communicator, const SweepOptions& options, OnStart on_start, OnRow on_row) {
  const auto sizes = GYRE_TRY(sizes_of(options));
  GYRE_TRY(compare_options(communicator.bootstrap(), options));
  const SweepBuffer input = GYRE_TRY(SweepBuffer::allocate(sizes.back()));
  const SweepBuffer output = GYRE_TRY(SweepBuffer::allocate(sizes.back()));
  for (const DataType type : options.types) {
    for (const ReduceOp op : options.ops) {
      for (const size_t bytes : sizes) {
        on_start(bytes);
        on_row(GYRE_TRY(measure(communicator, options, bytes, type, op, input.data(), output.data())));
      }
    }
  }
  return {};
}

}  // namespace gyre::perf
