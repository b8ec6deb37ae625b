// The pre-multiplied sum between ranks as threads: every rank has a scalar of its own, which no other rank needs to know.
#include <fmt/format.h>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/backends.h"
#include "test/kernels/patterns.h"
#include "test/ranks.h"
#include "test/text.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::first_wrong;
using gyre::test::run_ranks;

namespace {

/// A small whole number as a type's bits: sums of a few of them are exact in every type.
uint64_t whole(DataType type, int value) {
  if (is_integer(type)) return static_cast<uint64_t>(static_cast<int64_t>(value)) & test::pattern_mask(type);
  if (type == DataType::float64) return test::pattern_of(static_cast<double>(value));
  if (type == DataType::float32) return test::pattern_of(static_cast<float>(value));
  return test::slow(type).nearest(value);
}
int part(Rank rank, size_t element) { return static_cast<int>((element + static_cast<size_t>(rank)) % 3) - 1; }
int scalar(Rank rank) { return std::array{2, -1, 1, 3, -2}.at(static_cast<size_t>(rank) % 5); }

/// One call on this rank; empty: its result is right.
std::string checked(Communicator& communicator, Collective collective, DataType type, size_t count) {
  const int ranks = communicator.size();
  const Rank rank = communicator.rank();
  const Rank root = ranks - 1;
  const bool scattered = collective == Collective::reduce_scatter;
  const size_t inputs = scattered ? count * static_cast<size_t>(ranks) : count;
  test::Patterns in;
  for (size_t i = 0; i < inputs; ++i) in.push_back(whole(type, part(rank, i)));
  const test::Bytes input = test::packed(type, in);
  test::Bytes output(count * size_of(type));
  const uint64_t element = whole(type, scalar(rank));
  Call call{collective, count, type, ReduceOp::premul_sum, root, scalar_bits(type, &element)};
  const Status status = communicator.run(call, input.data(), output.data());
  if (!status) return status.error().what;
  if (collective == Collective::reduce && rank != root) return {};
  const test::Patterns got = test::unpacked(type, output);
  for (size_t i = 0; i < count; ++i) {
    int sum = 0;
    for (Rank r = 0; r < ranks; ++r) sum += scalar(r) * part(r, scattered ? static_cast<size_t>(rank) * count + i : i);
    // Zeros of both signs are equal.
    const bool right = is_integer(type) ? got[i] == whole(type, sum) : test::float_value(type, got[i]) == sum;
    if (!right) return fmt::format("{} of {} {}: element {} is {:#x} and not {}", name(collective), count, name(type), i, got[i], sum);
  }
  return {};
}

std::string everything_right(Communicator& communicator, std::initializer_list<size_t> sizes) {
  for (const DataType type : all_data_types()) {
    for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::reduce}) {
      for (const size_t count : sizes) {
        if (std::string wrong = checked(communicator, collective, type, count); !wrong.empty()) return wrong;
      }
    }
  }
  return {};
}

}  // namespace

TEST_CASE("a pre-multiplied sum takes every rank's input times that rank's scalar, for every type and algorithm") {
  for (const auto& family : topo::families()) {
    for (const int ranks : {1, 2, 3, 5}) {
      INFO(family.name << ", " << ranks << " ranks");
      const auto config = all_configured({"GYRE_TRANSPORT=loopback", fmt::format("GYRE_ALGORITHM={}", family.name), "GYRE_SLOT_BYTES=4K"});
      CHECK(first_wrong(run_ranks(ranks, config, [](Communicator& c) { return everything_right(c, {1, 777}); })) == "");
    }
  }
}

TEST_CASE("a pre-multiplied sum of several pieces is right over every transport", "[transport]") {
  for (const std::string& backend : test::backends()) {
    for (const int ranks : {2, 3}) {
      INFO(backend << ", " << ranks << " ranks");
      const auto config = all_configured({"GYRE_TRANSPORT=" + backend});
      CHECK(first_wrong(run_ranks(ranks, config, [](Communicator& c) { return everything_right(c, {5, 20'011}); })) == "");
    }
  }
}

TEST_CASE("ranks must agree on the operation, not on its scalar") {
  const auto words = run_ranks(2, all_configured({"GYRE_TRANSPORT=loopback"}), [](Communicator& communicator) -> std::string {
    const float input = 1;
    float output = 0;
    const ReduceOp op = communicator.rank() == 0 ? ReduceOp::premul_sum : ReduceOp::sum;
    const Status status = communicator.run({Collective::all_reduce, 1, DataType::float32, op, 0, 0}, &input, &output);
    return status ? "no error" : status.error().what;
  });
  for (const std::string& said : words) CHECK(test::contains(said, "op=mulsum"));
}

TEST_CASE("calls that differ in what only one rank knows are the same call") {
  const Call one{Collective::all_reduce, 8, DataType::float32, ReduceOp::premul_sum, 0, 0x3f800000};
  const Call two{Collective::all_reduce, 8, DataType::float32, ReduceOp::premul_sum, 0, 0x40000000};
  CHECK(!(one == two));
  CHECK(normal(one) == normal(two));
}

TEST_CASE("an operation that does not exist is refused") {
  const Call call{Collective::all_reduce, 1, DataType::float32, static_cast<ReduceOp>(every_reduce_op_count), 0, 0};
  const auto refusal = refuse(call, 1);
  REQUIRE(refusal);
  CHECK(refusal->what == "all_reduce: there is no operation 6");
}

TEST_CASE("a scalar is read as an element, wherever it lies") {
  const std::array<uint8_t, 9> memory{0xff, 1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(scalar_bits(DataType::uint8, memory.data() + 1) == 1);
  CHECK(scalar_bits(DataType::float16, memory.data() + 1) == 0x0201);
  CHECK(scalar_bits(DataType::float32, memory.data() + 1) == 0x04030201);
  CHECK(scalar_bits(DataType::int64, memory.data() + 1) == 0x0807060504030201);
}
