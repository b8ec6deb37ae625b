#include "perf/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "perf/sweep_buffer.h"
#include "test/catch.h"
#include "test/ranks.h"
#include "transport/shared_heap.h"

using namespace gyre;
using namespace gyre::perf;

namespace {

SweepOptions from_to(size_t min_bytes, size_t max_bytes, size_t factor = 2, size_t step = 0) {
  SweepOptions options;
  options.min_bytes = min_bytes;
  options.max_bytes = max_bytes;
  options.step_factor = factor;
  options.step_bytes = step;
  return options;
}

using Sizes = std::vector<size_t>;

// On a communicator that somebody else owns; empty: no error, and no wrong element.
std::string swept(engine::Communicator& communicator, const SweepOptions& options) {
  std::array one{std::unique_ptr<engine::Communicator>(&communicator)};
  uint64_t wrong = 0;
  SweepEvents events;
  events.on_start = [](size_t) { return Status(); };
  events.on_row = [&](const Row& row) -> Status {
    wrong += row.wrong() + (row.out_of_place.checked ? 0 : 1);
    return {};
  };
  const auto rows = sweep(one, options, events);
  (void)one[0].release();
  if (!rows) return rows.error().what;
  return *rows == 2 && wrong == 0 ? "" : fmt::format("{} rows, {} wrong", *rows, wrong);
}

}  // namespace

TEST_CASE("sizes grow by the factor, up to and with the largest") {
  CHECK(*sizes_of(from_to(8, 64)) == Sizes{8, 16, 32, 64});
  CHECK(*sizes_of(from_to(8, 63)) == Sizes{8, 16, 32});
  CHECK(*sizes_of(from_to(1, 100, 10)) == Sizes{1, 10, 100});
  CHECK(*sizes_of(from_to(64, 64)) == Sizes{64});
}

TEST_CASE("sizes grow by the step where one is given, whatever the factor") {
  CHECK(*sizes_of(from_to(8, 20, 0, 6)) == Sizes{8, 14, 20});
  CHECK(*sizes_of(from_to(0, 10, 2, 4)) == Sizes{0, 4, 8});
}

TEST_CASE("a sweep may begin at nothing") { CHECK(*sizes_of(from_to(0, 8)) == Sizes{0, 1, 2, 4, 8}); }

TEST_CASE("sizes near the end of the address space end there") {
  CHECK(*sizes_of(from_to(SIZE_MAX - 1, SIZE_MAX)) == Sizes{SIZE_MAX - 1});
  CHECK(sizes_of(from_to(1, SIZE_MAX))->size() == 64);
  const size_t large = (size_t{1} << 54) - (size_t{1} << 30);  // times 3,000,000,000 it is past the end
  CHECK(*sizes_of(from_to(large, SIZE_MAX - 1, 3'000'000'000)) == Sizes{large});
}

TEST_CASE("no sizes and too many are errors that name the flag") {
  const auto none = sizes_of(from_to(64, 8));
  REQUIRE_FALSE(none);
  CHECK(none.error().what == "-b 64 is larger than -e 8: no sizes to run");
  for (const size_t factor : {size_t{0}, size_t{1}}) {
    const auto standing = sizes_of(from_to(8, 64, factor));
    REQUIRE_FALSE(standing);
    CHECK(standing.error().what.starts_with("-f " + std::to_string(factor)));
  }
  const auto many = sizes_of(from_to(0, 1 << 30, 2, 1));
  REQUIRE_FALSE(many);
  CHECK(many.error().what.starts_with("-i 1: more than 100000 sizes"));
}

TEST_CASE("roots are one that exists, or all") {
  SweepOptions options;
  CHECK(*roots_of(options, 3) == std::vector<Rank>{0});
  options.root = 2;
  CHECK(*roots_of(options, 3) == std::vector<Rank>{2});
  const auto none = roots_of(options, 2);
  REQUIRE_FALSE(none);
  CHECK(none.error().what == "-r 2: no such rank; there are 2, from 0");
  CHECK(none.error().code == Code::invalid_argument);
  options.root = std::nullopt;
  CHECK(*roots_of(options, 3) == std::vector<Rank>{0, 1, 2});
}

TEST_CASE("a sweep has a row for each size, type, operation and root") {
  SweepOptions options = from_to(8, 64);
  options.types = {DataType::int8, DataType::float32};
  options.ops = {ReduceOp::sum, ReduceOp::max, ReduceOp::avg};
  options.root = std::nullopt;
  CHECK(*rows_of(options, 5) == 4 * 2 * 3 * 5);
}

TEST_CASE("the error of a prediction is relative to what was measured out of place") {
  Row row;
  CHECK_FALSE(row.prediction_error());
  row.predicted_us = 15;
  CHECK_FALSE(row.prediction_error());  // nothing was measured
  row.out_of_place.time_us = 10;
  CHECK(*row.prediction_error() == 0.5);
}

TEST_CASE("a sweep's buffer is zeros, aligned to a page, and moves") {
  for (const auto kind : {SweepBuffer::Kind::ordinary, SweepBuffer::Kind::shared_heap}) {
    auto buffer = SweepBuffer::allocate(10000, kind);
    REQUIRE(buffer);
    const SweepBuffer moved = *std::move(buffer);
    const auto* bytes = static_cast<const std::byte*>(moved.data());
    CHECK(reinterpret_cast<uintptr_t>(bytes) % 4096 == 0);
    CHECK(std::all_of(bytes, bytes + 10000, [](std::byte b) { return b == std::byte{0}; }));
    CHECK(SweepBuffer::allocate(0, kind));
    CHECK_FALSE(SweepBuffer::allocate(SIZE_MAX / 2, kind));
  }
}

TEST_CASE("a buffer is of the shared heap where that is asked for, and as long as it lives") {
  const auto& heap = transport::SharedHeap::of_process();
  const void* at = nullptr;
  {
    const auto shared = SweepBuffer::allocate(10000, SweepBuffer::Kind::shared_heap);
    at = shared->data();
    CHECK(heap.find(at, 10000));
    CHECK_FALSE(heap.find(SweepBuffer::allocate(10000)->data(), 10000));
  }
  CHECK_FALSE(heap.find(at, 1));
}

TEST_CASE("sweeps on ordinary buffers and on those of the shared heap are right, as ranks of one process too") {
  for (const Collective collective : all_collectives()) {
    for (const int registered : {0, 1, 2}) {
      SweepOptions options = from_to(100, 50000, 500);
      options.benchmark = &benchmark_of(collective);
      options.local_register = registered;
      options.unalign = registered;
      options.timing = {.warmup = 0, .iterations = 1};
      const auto words = gyre::test::run_ranks(3, gyre::test::all_configured({"GYRE_TRANSPORT=shm"}),
                                               [&](engine::Communicator& shared) { return swept(shared, options); });
      INFO(name(collective) << " -R " << registered);
      CHECK(gyre::test::first_wrong(words) == "");
    }
  }
}
