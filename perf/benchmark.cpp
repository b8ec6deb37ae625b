#include "perf/benchmark.h"

#include <algorithm>
#include <array>

namespace gyre::perf {
namespace {

constexpr bool one_block = false;  // of input_per_rank and output_per_rank
constexpr bool blocks_of_all = true;
constexpr bool has_in_place = true;
constexpr bool no_in_place = false;

constexpr std::array<Benchmark, collective_count + 1> benchmark_table{{
    {"all_reduce", "all-reduce", Collective::all_reduce, one_block, one_block, has_in_place, Traffic::all_but_own_twice},
    {"reduce_scatter", "reduce-scatter", Collective::reduce_scatter, blocks_of_all, one_block, has_in_place, Traffic::all_but_own},
    {"all_gather", "all-gather", Collective::all_gather, one_block, blocks_of_all, has_in_place, Traffic::all_but_own},
    {"broadcast", "broadcast", Collective::broadcast, one_block, one_block, has_in_place, Traffic::once},
    {"reduce", "reduce", Collective::reduce, one_block, one_block, has_in_place, Traffic::once},
    {"alltoall", "all-to-all", Collective::all_to_all, blocks_of_all, blocks_of_all, no_in_place, Traffic::all_but_own},
    {"gather", "gather", Collective::gather, one_block, blocks_of_all, has_in_place, Traffic::all_but_own},
    {"scatter", "scatter", Collective::scatter, blocks_of_all, one_block, has_in_place, Traffic::all_but_own},
    {"sendrecv", "sending to the next rank", std::nullopt, one_block, one_block, no_in_place, Traffic::once},
}};

}  // namespace

std::array<ReduceOp, every_reduce_op_count> sweep_ops() {
  std::array<ReduceOp, every_reduce_op_count> ops{};
  for (size_t i = 0; i < ops.size(); ++i) ops[i] = static_cast<ReduceOp>(i);
  return ops;
}
std::optional<ReduceOp> sweep_op_named(std::string_view wanted) {
  return wanted == name(ReduceOp::premul_sum) ? ReduceOp::premul_sum : reduce_op_named(wanted);
}

std::span<const Benchmark> benchmarks() { return benchmark_table; }

const Benchmark& benchmark_of(Collective collective) {
  return *std::find_if(benchmark_table.begin(), benchmark_table.end(), [&](const Benchmark& b) { return b.collective == collective; });
}
const Benchmark& send_and_receive() { return benchmark_table.back(); }

double bus_factor(const Benchmark& benchmark, int ranks) {
  if (benchmark.traffic == Traffic::once) return 1;
  const double all_but_own = static_cast<double>(ranks - 1) / ranks;
  return benchmark.traffic == Traffic::all_but_own ? all_but_own : 2 * all_but_own;
}

bool Case::has_input(Rank rank) const {
  return rank == root || (benchmark->collective != Collective::broadcast && benchmark->collective != Collective::scatter);
}
bool Case::has_output(Rank rank) const {
  return rank == root || (benchmark->collective != Collective::reduce && benchmark->collective != Collective::gather);
}
size_t Case::input_elements(Rank rank) const {
  if (!has_input(rank)) return 0;
  return benchmark->input_per_rank ? count * static_cast<size_t>(ranks) : count;
}
size_t Case::output_elements(Rank rank) const {
  if (!has_output(rank)) return 0;
  return benchmark->output_per_rank ? count * static_cast<size_t>(ranks) : count;
}
size_t Case::input_offset(Rank rank) const {  // a block among the output's blocks
  return benchmark->output_per_rank && !benchmark->input_per_rank ? count * static_cast<size_t>(rank) : 0;
}
size_t Case::output_offset(Rank rank) const {  // a block among the input's blocks
  return benchmark->input_per_rank && !benchmark->output_per_rank ? count * static_cast<size_t>(rank) : 0;
}

Case case_of(const Benchmark& benchmark, int ranks, size_t bytes, DataType type, ReduceOp op, Rank root) {
  Case made{&benchmark, ranks, 0, type, op, root};
  made.count = bytes / size_of(type) / made.blocks();
  return made;
}

}  // namespace gyre::perf
