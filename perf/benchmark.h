// The table of what gyre-perf measures, and what each row means: which memory a rank has, how its size is counted, how much of it the
// busiest link carries. Conventions and names are nccl-tests'. Does not use schedule/layout.h, so that a sweep checks that, too.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "base/types.h"

namespace gyre::perf {

/// The part of a call's bytes that every link has to carry, which is what busbw is computed from.
enum class Traffic : uint8_t { once, all_but_own, all_but_own_twice };

struct Benchmark {
  std::string_view name;                 ///< of the subcommand
  std::string_view title;                ///< in a sentence
  std::optional<Collective> collective;  ///< none: every rank sends to the next one and receives from the one before, in one group
  bool input_per_rank;                   ///< the input has a block for every rank, else one
  bool output_per_rank;
  bool has_in_place;
  Traffic traffic;

  bool reduces() const { return collective && gyre::reduces(*collective); }
  bool rooted() const { return collective && gyre::rooted(*collective); }
  /// Of the larger of input and output.
  size_t blocks(int ranks) const { return input_per_rank || output_per_rank ? static_cast<size_t>(ranks) : 1; }
};

/// Operations of a sweep: NCCL's five, and pre-multiplied sums.
std::array<ReduceOp, every_reduce_op_count> sweep_ops();
std::optional<ReduceOp> sweep_op_named(std::string_view);

std::span<const Benchmark> benchmarks();
const Benchmark& benchmark_of(Collective);
const Benchmark& send_and_receive();

/// busbw / algbw.
double bus_factor(const Benchmark&, int ranks);

/// A call of a benchmark, which all ranks make alike.
struct Case {
  const Benchmark* benchmark = nullptr;
  int ranks = 1;
  size_t count = 0;  ///< elements of a block
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  Rank root = 0;

  /// Of the larger of input and output.
  size_t blocks() const { return benchmark->blocks(ranks); }
  size_t bytes() const { return blocks() * count * size_of(type); }

  bool has_input(Rank) const;
  bool has_output(Rank) const;
  size_t input_elements(Rank) const;
  size_t output_elements(Rank) const;
  /// In place, elements of the shared memory before a rank's input, and before its output.
  size_t input_offset(Rank) const;
  size_t output_offset(Rank) const;
};

/// The largest case of at most so many bytes: whole elements, the same number for every rank.
Case case_of(const Benchmark&, int ranks, size_t bytes, DataType, ReduceOp, Rank root);

}  // namespace gyre::perf
