#include "perf/benchmark.h"

#include <set>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;

TEST_CASE("every collective has one benchmark, and its name") {
  std::set<std::string_view> names;
  for (const Benchmark& benchmark : benchmarks()) {
    names.insert(benchmark.name);
    if (benchmark.collective) CHECK(benchmark.name == name(*benchmark.collective));
  }
  for (const Collective collective : all_collectives()) CHECK(benchmark_of(collective).collective == collective);
  CHECK(names.size() == collective_count + 1);
  CHECK_FALSE(send_and_receive().collective);
}

TEST_CASE("operations have NCCL's names, pre-multiplied sums that of nccl-tests") {
  for (const ReduceOp op : sweep_ops()) CHECK(sweep_op_named(name(op)) == op);
  CHECK(sweep_op_named("mulsum") == ReduceOp::premul_sum);
  CHECK_FALSE(sweep_op_named("premul_sum"));
}

TEST_CASE("bus bandwidth is nccl-tests'") {
  for (const Collective collective : all_collectives()) {
    const Benchmark& benchmark = benchmark_of(collective);
    INFO(benchmark.name);
    switch (collective) {
      case Collective::all_reduce:
        CHECK(bus_factor(benchmark, 4) == 1.5);
        CHECK(bus_factor(benchmark, 1) == 0);
        break;
      case Collective::broadcast:
      case Collective::reduce:
        CHECK(bus_factor(benchmark, 4) == 1);
        CHECK(bus_factor(benchmark, 1) == 1);
        break;
      default:
        CHECK(bus_factor(benchmark, 4) == 0.75);
        CHECK(bus_factor(benchmark, 1) == 0);
        break;
    }
  }
  CHECK(bus_factor(send_and_receive(), 4) == 1);
}

TEST_CASE("a case has as many whole elements as its size holds, the same for every rank") {
  const auto count = [](Collective collective, size_t bytes, DataType type) {
    return case_of(benchmark_of(collective), 3, bytes, type, ReduceOp::sum, 0).count;
  };
  CHECK(count(Collective::all_reduce, 103, DataType::float32) == 25);
  CHECK(count(Collective::broadcast, 103, DataType::float32) == 25);
  for (const Collective collective :
       {Collective::reduce_scatter, Collective::all_gather, Collective::all_to_all, Collective::gather, Collective::scatter}) {
    CHECK(count(collective, 103, DataType::float32) == 8);
    CHECK(count(collective, 103, DataType::uint8) == 34);
    CHECK(count(collective, 11, DataType::float32) == 0);
    CHECK(count(collective, 12, DataType::float32) == 1);
  }
  CHECK(case_of(send_and_receive(), 3, 103, DataType::float32, ReduceOp::sum, 0).count == 25);
  CHECK(case_of(benchmark_of(Collective::all_gather), 3, 103, DataType::float32, ReduceOp::sum, 0).bytes() == 96);
}
