// What a sweep expects, compared with what schedule/layout.h says a collective means: the two were written apart.
#include "perf/check.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "kernels/reduce_host.h"
#include "schedule/layout.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;

namespace {

using Bytes = std::vector<std::byte>;

schedule::Layout layout(const Case& c) { return {*c.benchmark->collective, c.ranks, c.root, 1}; }

Bytes input(const Case& c, Rank rank) {
  Bytes bytes(c.input_elements(rank) * size_of(c.type));
  prepare(c, rank, bytes.data());
  return bytes;
}

/// A block of a rank's input, or of the reduction of all.
Bytes block_of(const Case& c, schedule::Part part) {
  const size_t size = c.count * size_of(c.type);
  const auto own = [&](Rank rank) {
    const Bytes whole = input(c, rank);
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(part.chunk * size);
    return Bytes(first, first + static_cast<std::ptrdiff_t>(size));
  };
  if (part.rank != schedule::every_rank) return own(part.rank);
  const kernels::Arithmetic& kernel = *kernels::arithmetic(c.type, c.op, "portable");
  Bytes sum = own(0);
  for (Rank rank = 1; rank < c.ranks; ++rank) kernel.combine(sum.data(), sum.data(), own(rank).data(), c.count);
  return sum;
}

Bytes expected_output(const Case& c, Rank rank) {
  Bytes output;
  if (!c.benchmark->collective) return input(c, rank == 0 ? c.ranks - 1 : rank - 1);
  if (!layout(c).has_output(rank)) return output;
  for (uint32_t block = 0; block < layout(c).output_blocks(); ++block) {
    const Bytes bytes = block_of(c, layout(c).expected(rank, block));
    output.insert(output.end(), bytes.begin(), bytes.end());
  }
  return output;
}

template <class Visit>
void for_each_case(Visit visit, DataType type = DataType::float32, size_t count = 37) {
  for (const Benchmark& benchmark : benchmarks()) {
    for (const int ranks : {1, 2, 3, 5}) {
      for (Rank root = 0; root < (benchmark.rooted() ? ranks : 1); ++root) {
        const Case c{&benchmark, ranks, count, type, ReduceOp::sum, root};
        for (Rank rank = 0; rank < ranks; ++rank) {
          INFO(fmt::format("{}, {} ranks, root {}, rank {}", benchmark.name, ranks, root, rank));
          visit(c, rank);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("a rank has the memory that the layout says, in place too") {
  for_each_case([](const Case& c, Rank rank) {
    if (!c.benchmark->collective) return;
    const schedule::Layout wanted = layout(c);
    CHECK(c.input_elements(rank) == (wanted.has_input(rank) ? wanted.input_blocks() * c.count : 0));
    CHECK(c.output_elements(rank) == (wanted.has_output(rank) ? wanted.output_blocks() * c.count : 0));
    CHECK(c.benchmark->has_in_place == wanted.has_in_place());
    CHECK(c.input_offset(rank) == wanted.input_offset(rank) * c.count);
    CHECK(c.output_offset(rank) == wanted.output_offset(rank) * c.count);
    CHECK(c.blocks() == std::max(wanted.input_blocks(), wanted.output_blocks()));
    CHECK(c.bytes() == c.blocks() * c.count * size_of(c.type));
  });
}

TEST_CASE("what the layout says is right, for every size of element") {
  for (const DataType type : {DataType::uint8, DataType::bfloat16, DataType::int32, DataType::float64}) {
    for_each_case([](const Case& c, Rank rank) { CHECK(count_wrong(c, rank, expected_output(c, rank).data()) == 0); }, type);
  }
}

TEST_CASE("a wrong element is found wherever it is") {
  for_each_case(
      [](const Case& c, Rank rank) {
        const Bytes right = expected_output(c, rank);
        for (size_t at = 0; at < right.size(); at += size_of(c.type)) {
          Bytes wrong = right;
          wrong[at] ^= std::byte{1};
          if (count_wrong(c, rank, wrong.data()) != 1) FAIL_CHECK("not found at byte " << at);
        }
      },
      DataType::int32, 5);
}

TEST_CASE("blocks that changed places are found") {
  for_each_case([](const Case& c, Rank rank) {
    Bytes wrong = expected_output(c, rank);
    const size_t block = c.count * size_of(c.type);
    if (wrong.size() < 2 * block) return;
    std::swap_ranges(wrong.begin(), wrong.begin() + static_cast<std::ptrdiff_t>(block), wrong.end() - static_cast<std::ptrdiff_t>(block));
    CHECK(count_wrong(c, rank, wrong.data()) == 2 * c.count);
  });
}

TEST_CASE("what another rank should have, or of another root, is found") {
  for_each_case([](const Case& c, Rank rank) {
    if (c.ranks == 1 || c.output_elements(rank) == 0) return;
    Case other = c;
    other.root = (c.root + 1) % c.ranks;
    const bool by_root = c.benchmark->collective == Collective::broadcast || c.benchmark->collective == Collective::scatter;
    if (by_root) CHECK(count_wrong(c, rank, expected_output(other, rank).data()) > 0);
    const bool alike = c.benchmark->collective && !c.benchmark->input_per_rank;  // on all ranks
    if (!alike) CHECK(count_wrong(c, rank, expected_output(c, (rank + 1) % c.ranks).data()) > 0);
  });
}

TEST_CASE("an input that was changed is found, also beyond the first piece that is looked at") {
  for_each_case(
      [](const Case& c, Rank rank) {
        Bytes bytes = input(c, rank);
        CHECK(count_changed(c, rank, bytes.data()) == 0);
        if (bytes.empty()) return;
        bytes.front() ^= std::byte{1};
        bytes.back() ^= std::byte{1};
        CHECK(count_changed(c, rank, bytes.data()) == 2);
      },
      DataType::float64, 5000);
}

TEST_CASE("writing behind an output is found") {
  Bytes behind(guard_bytes);
  set_guard(behind.data());
  CHECK(count_trespasses(behind.data()) == 0);
  behind.front() = std::byte{0};
  behind.back() = std::byte{0};
  CHECK(count_trespasses(behind.data()) == 2);
}
