// What checks every result of a sweep must itself find what is wrong.
#include "perf/reference.h"

#include <cstring>
#include <vector>

#include "kernels/reduce_host.h"
#include "perf/benchmark.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;

namespace {

using Bytes = std::vector<std::byte>;

Bytes input(size_t count, DataType type, ReduceOp op, Rank rank, int ranks) {
  Bytes bytes(count * size_of(type));
  fill_input(bytes.data(), count, type, op, rank, ranks);
  return bytes;
}

/// The all-reduce in the order of `parts`, by the plain kernels.
Bytes reduced(size_t count, DataType type, ReduceOp op, const std::vector<Rank>& parts, int ranks) {
  const kernels::Arithmetic& kernel = *kernels::arithmetic(type, op, "portable");
  const auto scalar = [&](Rank rank) {
    return op == ReduceOp::premul_sum ? kernels::factor_of(type, input_scalar(type, op, rank))
                                      : kernels::Factor{kernels::avg_scalar(type, ranks), 1};
  };
  Bytes sum = input(count, type, op, parts[0], ranks);
  if (kernel.scale != nullptr) kernel.scale(sum.data(), sum.data(), count, scalar(parts[0]));
  for (size_t i = 1; i < parts.size(); ++i) {
    const Bytes next = input(count, type, op, parts[i], ranks);
    if (kernel.scale != nullptr) {
      kernel.scale_combine(sum.data(), next.data(), sum.data(), count, scalar(parts[i]));
    } else {
      kernel.combine(sum.data(), sum.data(), next.data(), count);
    }
  }
  if (kernel.divide != nullptr) kernel.divide(sum.data(), count, static_cast<uint64_t>(ranks));
  return sum;
}

std::vector<Rank> all_ranks(int ranks) {
  std::vector<Rank> all;
  for (Rank rank = 0; rank < ranks; ++rank) all.push_back(rank);
  return all;
}

/// Averages of floats over these numbers of ranks are compared within a bound, all else exactly.
bool exact(DataType type, ReduceOp op, int ranks) { return is_integer(type) || op != ReduceOp::avg || (ranks & (ranks - 1)) == 0; }

template <class Visit>
void for_each_reduction(Visit visit) {
  for (const int ranks : {2, 3, 4, 8, 33}) {
    for (const DataType type : all_data_types()) {
      for (const ReduceOp op : sweep_ops()) {
        INFO(name(type) << " " << name(op) << ", " << ranks << " ranks");
        visit(type, op, ranks);
      }
    }
  }
}

}  // namespace

TEST_CASE("a right result has no wrong elements, in the order of ranks and in the reverse") {
  for_each_reduction([](DataType type, ReduceOp op, int ranks) {
    std::vector<Rank> parts = all_ranks(ranks);
    CHECK(count_wrong(reduced(500, type, op, parts, ranks).data(), 500, type, op, ranks) == 0);
    std::reverse(parts.begin(), parts.end());
    CHECK(count_wrong(reduced(500, type, op, parts, ranks).data(), 500, type, op, ranks) == 0);
  });
}

TEST_CASE("one wrong element is found, be it by its last bit where results are exact") {
  for_each_reduction([](DataType type, ReduceOp op, int ranks) {
    constexpr size_t count = 100;
    const Bytes right = reduced(count, type, op, all_ranks(ranks), ranks);
    const size_t size = size_of(type);
    for (const size_t at : {size_t{0}, size_t{57}, count - 1}) {
      Bytes wrong = right;
      if (exact(type, op, ranks)) {
        wrong[at * size] ^= std::byte{1};
      } else {  // the largest finite number or nearly so
        std::memset(&wrong[at * size], 0x7b, size);
      }
      CHECK(count_wrong(wrong.data(), count, type, op, ranks) == 1);
    }
  });
}

TEST_CASE("what is no number is wrong") {
  for (const DataType type : all_data_types()) {
    if (is_integer(type)) continue;
    Bytes bytes = reduced(10, type, ReduceOp::avg, all_ranks(3), 3);
    std::memset(&bytes[3 * size_of(type)], 0x7f, size_of(type));
    INFO(name(type));
    CHECK(count_wrong(bytes.data(), 10, type, ReduceOp::avg, 3) == 1);
  }
}

TEST_CASE("a rank's part that is missing is found") {
  for_each_reduction([](DataType type, ReduceOp op, int ranks) {
    for (const Rank missing : {0, ranks - 1}) {
      std::vector<Rank> parts = all_ranks(ranks);
      parts.erase(parts.begin() + missing);
      const size_t count = size_of(type) == 1 && ranks == 33 ? 20000 : 500;  // few values: seldom is one rank's alone the largest
      CHECK(count_wrong(reduced(count, type, op, parts, ranks).data(), count, type, op, ranks) > 0);
    }
  });
}

TEST_CASE("a rank's part that counts twice is found, where that makes a difference") {
  for_each_reduction([](DataType type, ReduceOp op, int ranks) {
    if (op == ReduceOp::min || op == ReduceOp::max) return;
    std::vector<Rank> parts = all_ranks(ranks);
    parts.push_back(ranks / 2);
    CHECK(count_wrong(reduced(500, type, op, parts, ranks).data(), 500, type, op, ranks) > 0);
  });
}

TEST_CASE("a pre-multiplied sum by another rank's scalar is found") {
  for (const DataType type : all_data_types()) {
    const kernels::Arithmetic& kernel = *kernels::arithmetic(type, ReduceOp::premul_sum, "portable");
    for (const Rank multiplier : {0, 1}) {  // of both inputs: wrong for one of them
      Bytes sum = input(500, type, ReduceOp::premul_sum, 0, 2);
      const Bytes next = input(500, type, ReduceOp::premul_sum, 1, 2);
      const auto scalar = kernels::factor_of(type, input_scalar(type, ReduceOp::premul_sum, multiplier));
      kernel.scale(sum.data(), sum.data(), 500, scalar);
      kernel.scale_combine(sum.data(), next.data(), sum.data(), 500, scalar);
      INFO(name(type) << ", rank " << multiplier);
      CHECK(count_wrong(sum.data(), 500, type, ReduceOp::premul_sum, 2) > 0);
    }
  }
}

TEST_CASE("only a pre-multiplied sum has scalars, and neighbours' differ") {
  for (const DataType type : all_data_types()) {
    INFO(name(type));
    CHECK(input_scalar(type, ReduceOp::sum, 3) == 0);
    for (Rank rank = 0; rank < 8; ++rank) {
      CHECK(input_scalar(type, ReduceOp::premul_sum, rank) != input_scalar(type, ReduceOp::premul_sum, rank + 1));
    }
  }
}

TEST_CASE("inputs left as they were are found") {
  for_each_reduction(
      [](DataType type, ReduceOp op, int ranks) { CHECK(count_wrong(input(500, type, op, 0, ranks).data(), 500, type, op, ranks) > 0); });
}

TEST_CASE("sums of 32-bit integers are what this loop says") {
  for (const int ranks : {1, 2, 7}) {
    std::vector<uint32_t> sum(1000);
    for (Rank rank = 0; rank < ranks; ++rank) {
      std::vector<uint32_t> part(sum.size());
      fill_input(part.data(), part.size(), DataType::int32, ReduceOp::sum, rank, ranks);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    CHECK(count_wrong(sum.data(), sum.size(), DataType::int32, ReduceOp::sum, ranks) == 0);
    sum[999] += 1;
    CHECK(count_wrong(sum.data(), sum.size(), DataType::int32, ReduceOp::sum, ranks) == 1);
  }
}

TEST_CASE("sums of floats are what this loop says") {
  std::vector<double> sum(1000);
  for (Rank rank = 0; rank < 5; ++rank) {
    std::vector<double> part(sum.size());
    fill_input(part.data(), part.size(), DataType::float64, ReduceOp::sum, rank, 5);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  CHECK(count_wrong(sum.data(), sum.size(), DataType::float64, ReduceOp::sum, 5) == 0);
}

TEST_CASE("inputs depend on rank and element, and are the same each time") {
  for (const DataType type : all_data_types()) {
    const Bytes first = input(300, type, ReduceOp::max, 0, 4);
    CHECK(first == input(300, type, ReduceOp::max, 0, 4));
    CHECK(first != input(300, type, ReduceOp::max, 1, 4));
    const auto half = static_cast<std::ptrdiff_t>(150 * size_of(type));
    CHECK_FALSE(std::equal(first.begin(), first.begin() + half, first.begin() + half));
  }
}
