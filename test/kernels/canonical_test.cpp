#include "kernels/canonical.h"

#include <fmt/format.h>

#include <random>

#include "test/catch.h"
#include "test/kernels/canonical_reference.h"

using namespace gyre;
using namespace gyre::kernels;
using schedule::Association;
using test::Bytes;
using test::Patterns;

namespace {

/// Inputs of all ranks, their scalars, and what an ordered reduction makes of them.
struct Inputs {
  std::vector<Patterns> parts;  // [rank][element]
  Patterns scalars;             // [rank]
  std::vector<Bytes> memory;
  std::vector<Factor> factors;
  Patterns expected;
};
Inputs drawn(std::mt19937_64& random, DataType type, ReduceOp op, size_t ranks, size_t count) {
  const Patterns special = test::special_patterns(type);
  Inputs inputs;
  for (size_t rank = 0; rank < ranks; ++rank) {
    Patterns& parts = inputs.parts.emplace_back();
    for (size_t i = 0; i < count; ++i) parts.push_back(test::drawn_pattern(random, type, special));
    inputs.memory.push_back(test::packed(type, parts));
    inputs.scalars.push_back(test::drawn_pattern(random, type, special));
    inputs.factors.push_back(factor_of(type, inputs.scalars.back()));
  }
  for (size_t i = 0; i < count; ++i) {
    Patterns column;
    for (const Patterns& parts : inputs.parts) column.push_back(parts[i]);
    inputs.expected.push_back(test::canonical_reference(type, op, column, inputs.scalars));
  }
  return inputs;
}

/// The first element that is not as expected; empty: none.
std::string difference(DataType type, const Bytes& found, const Patterns& expected) {
  const Patterns patterns = test::unpacked(type, found);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!test::same_result(type, patterns[i], expected[i]))
      return fmt::format("element {}: {:#x} and not {:#x}", i, patterns[i], expected[i]);
  }
  return {};
}

std::vector<const void*> addresses(const std::vector<Bytes>& memory) {
  std::vector<const void*> all;
  for (const Bytes& bytes : memory) all.push_back(bytes.data());
  return all;
}

/// All operations.
std::vector<ReduceOp> operations() {
  std::vector<ReduceOp> all;
  for (size_t i = 0; i < every_reduce_op_count; ++i) all.push_back(static_cast<ReduceOp>(i));
  return all;
}

}  // namespace

TEST_CASE("all ranks' inputs are reduced by the canonical tree with one rounding of small floats, for every type and operation") {
  std::mt19937_64 random(21);
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : operations()) {
      for (size_t ranks = 1; ranks <= 17; ++ranks) {
        const size_t count = ranks % 4 == 0 ? 2500 : 77;  // more than two blocks
        const Inputs inputs = drawn(random, type, op, ranks, count);
        Bytes out(count * size_of(type));
        const auto factors = op == ReduceOp::premul_sum ? std::span<const Factor>(inputs.factors) : std::span<const Factor>();
        reduce_canonical(out.data(), addresses(inputs.memory), count, type, op, factors);
        INFO(name(type) << " " << name(op) << ", " << ranks << " ranks");
        CHECK(difference(type, out, inputs.expected) == "");
      }
    }
  }
}

TEST_CASE("the result may be written over any of the inputs") {
  std::mt19937_64 random(22);
  for (const DataType type : all_data_types()) {
    for (const size_t ranks : {1U, 2U, 3U, 4U, 5U, 8U}) {
      for (size_t over = 0; over < ranks; ++over) {
        Inputs inputs = drawn(random, type, ReduceOp::avg, ranks, 3000);
        reduce_canonical(inputs.memory[over].data(), addresses(inputs.memory), 3000, type, ReduceOp::avg);
        INFO(name(type) << ", " << ranks << " ranks, over " << over);
        CHECK(difference(type, inputs.memory[over], inputs.expected) == "");
      }
    }
  }
}

TEST_CASE("every instruction set gives the same sums, whatever the count") {
  std::mt19937_64 random(23);
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : all_reduce_ops()) {
      for (const std::string_view isa : {"portable", "avx2", "avx512"}) {
        const TreeKernels* kernels = tree_kernels(type, op, isa);
        if (kernels == nullptr) continue;
        for (const size_t count : {size_t{0}, size_t{1}, size_t{31}, size_t{32}, size_t{33}, size_t{100}}) {
          for (size_t k = 0; k < 3; ++k) {
            const size_t ranks = size_t{2} << k;
            const Inputs inputs = drawn(random, type, op, ranks, count);
            Bytes out((count + 1) * size_of(type), std::byte{0x5a});
            kernels->parts_to_whole[k](out.data(), addresses(inputs.memory).data(), count, {avg_scalar(type, static_cast<int>(ranks)), 1});
            if (op == ReduceOp::avg && is_integer(type)) arithmetic(type, op).divide(out.data(), count, ranks);
            INFO(name(type) << " " << name(op) << " " << isa << ", " << ranks << " ranks, " << count << " elements");
            CHECK(difference(type, out, inputs.expected) == "");
            CHECK(out.back() == std::byte{0x5a});
          }
        }
      }
    }
  }
}

TEST_CASE("sums that are made part by part are those that are made at once") {
  std::mt19937_64 random(24);
  constexpr size_t count = 1500;
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : operations()) {
      const Inputs inputs = drawn(random, type, op, 6, count);
      CanonicalReduction reduction;
      reduction.bind(type, op, 6);
      const auto source = [&](size_t rank) {
        return CanonicalReduction::Source{inputs.memory[rank].data(), false, op == ReduceOp::premul_sum ? &inputs.factors[rank] : nullptr};
      };
      std::vector<Bytes> partials(4, Bytes(count * partial_size(type)));
      const auto partial = [&](size_t i) { return CanonicalReduction::Source{partials[i].data(), true, nullptr}; };
      const auto into = [&](size_t i, std::vector<CanonicalReduction::Source> sources) {
        reduction(partials[i].data(), false, sources, Association::in_order, count);
      };
      // ((0+1)+(2+3))+(4+5): in order, a part with a partial sum, over a source, and a part by itself.
      into(0, {source(0), source(1)});
      into(1, {source(2)});
      into(1, {partial(1), source(3)});
      into(0, {partial(0), partial(1)});
      into(2, {source(4), source(5)});
      Bytes out(count * size_of(type));
      reduction(out.data(), true, std::array{partial(0), partial(2)}, Association::in_order, count);
      reduction.divide(out.data(), count);
      INFO(name(type) << " " << name(op));
      CHECK(difference(type, out, inputs.expected) == "");
      into(3, {partial(0)});
      CHECK(partials[3] == partials[0]);
    }
  }
}

TEST_CASE("several sources in order are reduced in order") {
  std::mt19937_64 random(25);
  constexpr size_t count = 1500;
  for (const DataType type : {DataType::float16, DataType::float32, DataType::int64}) {
    const Inputs inputs = drawn(random, type, ReduceOp::prod, 5, count);
    CanonicalReduction reduction;
    reduction.bind(type, ReduceOp::prod, 5);
    std::vector<CanonicalReduction::Source> sources;
    for (const Bytes& memory : inputs.memory) sources.push_back({memory.data(), false, nullptr});
    Bytes out(count * size_of(type));
    reduction(out.data(), true, sources, Association::in_order, count);
    Patterns expected;
    for (size_t i = 0; i < count; ++i) {
      uint64_t product = test::canonical_part(type, inputs.parts[0][i], false, 1, 1);
      for (size_t r = 1; r < 5; ++r) {
        product = test::reference_combine(test::partial_type(type), ReduceOp::prod, product,
                                          test::canonical_part(type, inputs.parts[r][i], false, 1, 1));
      }
      expected.push_back(test::small_float(type) ? test::slow(type).nearest(test::float_value(DataType::float32, product)) : product);
    }
    CHECK(difference(type, out, expected) == "");
  }
}

TEST_CASE("a sum of small floats is rounded once") {
  // 2048 + 1 + 1 in half: each sum alone would round to 2048.
  const std::array<uint16_t, 3> parts{0x6800, 0x3c00, 0x3c00};
  const std::array<const void*, 3> inputs{&parts[0], &parts[1], &parts[2]};
  uint16_t out = 0;
  reduce_canonical(&out, inputs, 1, DataType::float16, ReduceOp::sum);
  CHECK(out == 0x6801);
  CHECK(test::float_value(DataType::float16, out) == 2050);
}
