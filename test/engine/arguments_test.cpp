// What a call's arguments must be: for every collective, in place where NCCL has it, and every wrong overlap.
#include "engine/arguments.h"

#include <fmt/format.h>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::engine;

namespace {

constexpr int job_size = 3;
constexpr size_t block_count = 8;

/// Elements of one memory that all buffers are taken from.
std::array<float, 4 * job_size * block_count> whole_memory{};

/// What is said of a call, or nothing.
std::string said(const Call& call, Rank rank, const void* input, void* output) {
  auto refusal = refuse(call, job_size);
  if (!refusal) refusal = refuse(call, rank, extent(call, rank, job_size), {input, output});
  return refusal ? refusal->what : "";
}
/// What is said of a call whose input and output begin at these blocks; `late`: elements that the output begins later.
std::string said(Collective collective, Rank rank, size_t input_block, size_t output_block, size_t late = 0) {
  return said({collective, block_count, DataType::float32, ReduceOp::sum, 1}, rank, whole_memory.data() + input_block * block_count,
              whole_memory.data() + output_block * block_count + late);
}

}  // namespace

TEST_CASE("in place is what NCCL calls so") {
  for (Rank r = 0; r < job_size; ++r) {
    const auto own = static_cast<size_t>(r);
    INFO("rank " << r);
    for (const Collective same : {Collective::all_reduce, Collective::reduce, Collective::broadcast}) CHECK(said(same, r, 1, 1).empty());
    CHECK(said(Collective::all_gather, r, own, 0).empty());
    CHECK(said(Collective::reduce_scatter, r, 0, own).empty());
    CHECK(said(Collective::gather, r, r == 1 ? own : 0, 0).empty());  // the root is rank 1
    CHECK(said(Collective::scatter, r, 0, r == 1 ? own : 0).empty());
    CHECK(said(Collective::all_to_all, r, 0, job_size).empty());
  }
}

TEST_CASE("any other overlap is refused, with what would be right") {
  CHECK(said(Collective::all_reduce, 0, 0, 0, 1) == "all_reduce: input and output overlap and are not the same");
  CHECK(said(Collective::broadcast, 1, 1, 0, 7) == "broadcast: input and output overlap and are not the same");
  CHECK(said(Collective::reduce, 1, 0, 0, 7) == "reduce: input and output overlap and are not the same");
  CHECK(said(Collective::all_gather, 2, 1, 0) == "all_gather: input and output overlap, and the input is not block 2 of the output");
  CHECK(said(Collective::reduce_scatter, 2, 0, 0) ==
        "reduce_scatter: input and output overlap, and the output is not block 2 of the input");
  CHECK(said(Collective::gather, 1, 0, 0) == "gather: input and output overlap, and the input is not block 1 of the output");
  CHECK(said(Collective::scatter, 1, 0, 2) == "scatter: input and output overlap, and the output is not block 1 of the input");
  CHECK(said(Collective::all_to_all, 0, 0, 0) == "alltoall: input and output overlap, and it has no form in place");
  CHECK(said(Collective::all_to_all, 0, 0, 2) == "alltoall: input and output overlap, and it has no form in place");
}

TEST_CASE("buffers that only touch do not overlap") {
  for (const Collective c : all_collectives()) {
    INFO(name(c));
    for (Rank r = 0; r < job_size; ++r) {
      CHECK(said(c, r, 0, job_size).empty());
      CHECK(said(c, r, job_size, 0).empty());
    }
  }
}

TEST_CASE("a buffer that a rank does not have is not looked at") {
  float* some = whole_memory.data();
  const auto odd = reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(some) + 1);
  for (float* ignored : {static_cast<float*>(nullptr), some, some + 1, odd}) {
    for (const Collective c : {Collective::broadcast, Collective::scatter}) {
      CHECK(said({c, block_count, DataType::float32, ReduceOp::sum, 1}, 0, ignored, some).empty());
    }
    for (const Collective c : {Collective::reduce, Collective::gather}) {
      CHECK(said({c, block_count, DataType::float32, ReduceOp::sum, 1}, 0, some, ignored).empty());
    }
  }
  CHECK(said({Collective::gather, block_count, DataType::float32, ReduceOp::sum, 1}, 1, some, nullptr) ==
        "gather: null buffer for 8 elements");
  CHECK(said({Collective::scatter, block_count, DataType::float32, ReduceOp::sum, 1}, 1, nullptr, some) ==
        "scatter: null buffer for 8 elements");
}

TEST_CASE("a root that is no rank, an operation and a collective that do not exist") {
  float* a = whole_memory.data();
  for (const Collective c : all_collectives()) {
    for (const Rank root : {-1, job_size}) {
      const std::string expected = rooted(c) ? fmt::format("{}: root {} of 3 ranks", name(c), root) : "";
      CHECK(said({c, 1, DataType::float32, ReduceOp::sum, root}, 0, a, a + job_size) == expected);
    }
    const std::string expected = reduces(c) ? fmt::format("{}: there is no operation 9", name(c)) : "";
    CHECK(said({c, 1, DataType::float32, static_cast<ReduceOp>(9), 0}, 0, a, a + job_size) == expected);
  }
  CHECK(said({static_cast<Collective>(8), 1, DataType::float32, ReduceOp::sum, 0}, 0, a, a) == "there is no collective 8");
}

TEST_CASE("the size is bounded by the larger buffer") {
  const size_t most = size_t{1} << 43;
  const auto call = [](Collective c, size_t bytes) { return Call{c, bytes, DataType::int8, ReduceOp::sum, 0}; };
  void* far = reinterpret_cast<void*>(uintptr_t{1} << 45);
  CHECK(said(call(Collective::all_reduce, most), 0, far, far).empty());
  CHECK(said(call(Collective::all_gather, most / 3), 0, far, far).empty());
  CHECK(said(call(Collective::all_gather, most / 3 + 1), 0, far, far) ==
        fmt::format("all_gather: {} elements of int8 for each of 3 ranks are more than {} bytes", most / 3 + 1, most));
  CHECK(said(call(Collective::all_reduce, SIZE_MAX), 0, far, far) ==
        fmt::format("all_reduce: {} elements of int8 are more than {} bytes", SIZE_MAX, most));
}

TEST_CASE("calls that differ only in what is ignored are equal") {
  const Call gather{Collective::all_gather, 5, DataType::int8, ReduceOp::max, 2};
  CHECK(normal(gather) == Call{Collective::all_gather, 5, DataType::int8, ReduceOp::sum, 0});
  const Call reduce{Collective::reduce, 5, DataType::int8, ReduceOp::max, 2};
  CHECK(normal(reduce) == reduce);
}
