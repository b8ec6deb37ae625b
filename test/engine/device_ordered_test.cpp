// Ordered numerics on a GPU: the host engine's bits, which depend on the ranks' inputs only, whatever runs.
#include <fmt/format.h>

#include <array>

#include "test/catch.h"
#include "test/engine/device_ranks.h"
#include "test/slow_builds.h"

using namespace gyre;
using namespace gyre::engine;
using test::CallMemory;
using test::DeviceRank;

namespace {

constexpr std::array float_types{DataType::float16,  DataType::float32,    DataType::float64,
                                 DataType::bfloat16, DataType::float8e4m3, DataType::float8e5m2};
constexpr std::array ordered_ops{ReduceOp::sum, ReduceOp::prod, ReduceOp::avg, ReduceOp::premul_sum};

std::vector<std::string> ordered_settings(const std::string& algorithm, const std::string& channels = "1") {
  return {"GYRE_TRANSPORT=loopback", "GYRE_SLOT_BYTES=4K", "GYRE_NUMERICS=ordered", "GYRE_ALGORITHM=" + algorithm,
          "GYRE_CHANNELS=" + channels};
}

/// By gates and by a kernel that stays, in turns.
std::string every_ordered_operation(DeviceRank& on, Collective collective, size_t count) {
  std::string wrong;
  size_t turn = count;
  for (const DataType type : float_types) {
    ++turn;
    for (const ReduceOp op : ordered_ops) {
      Call call{collective, count, type, op, rooted(collective) ? on.size() - 1 : 0};
      if (op == ReduceOp::premul_sum) call.scalar = kernels::avg_scalar_bits(type, 3 + on.rank());
      if (wrong.empty()) wrong = test::same_bits(on, call, test::both_hand_offs.at(turn++ % 2), op == ReduceOp::sum);
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("ordered reductions on a device have the host's bits, by every algorithm that keeps the order", "[device][ordered]") {
  size_t turn = 0;
  for (const char* family : {"one_shot", "two_shot", "halving_doubling", "tree", "naive"}) {
    for (const int ranks : test::sampled(std::array{5, 2, 3, 8})) {
      INFO(family << ", " << ranks << " ranks");
      CHECK(test::run_device_ranks(
                ranks, ordered_settings(family), [](DeviceRank& on) { return every_ordered_operation(on, Collective::all_reduce, 533); },
                test::every_reach.at(turn++ % 3)) == "");
    }
  }
}

TEST_CASE("every ordered collective that reduces has the host's bits on a device", "[device][ordered]") {
  for (const int ranks : test::sampled(std::array{6, 1, 4, 7})) {
    INFO(ranks << " ranks");
    CHECK(test::run_device_ranks(ranks, ordered_settings("auto", "2"), [](DeviceRank& on) {
            std::string wrong;
            for (const Collective collective : {Collective::reduce_scatter, Collective::reduce, Collective::all_reduce}) {
              for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{1501}, size_t{1502}})
                if (wrong.empty()) wrong = every_ordered_operation(on, collective, count);
            }
            return wrong;
          }) == "");
  }
}

TEST_CASE("an ordered sum on a device is the same bits by all algorithms", "[device][ordered]") {
  std::array<test::Bytes, 3> sums;
  size_t turn = 0;
  for (const char* family : {"one_shot", "halving_doubling", "two_shot"}) {
    CHECK(test::run_device_ranks(4, ordered_settings(family, turn == 1 ? "2" : "1"), [&](DeviceRank& on) -> std::string {
            const Call call{Collective::all_reduce, 20001, DataType::bfloat16, ReduceOp::sum, 0};
            CallMemory memory(call, on.rank(), on.size(), true);
            test::DeviceArray<std::byte> there(on, memory.bytes);
            const Status given = on.device.enqueue(call, memory.input(there.data()), memory.output(there.data()), on.stream.handle());
            if (!given) return given.error().what;
            test::Bytes found = there.get();
            if (on.rank() == 0) sums.at(turn) = std::move(found);
            return {};
          }) == "");
    ++turn;
  }
  CHECK(sums[0].size() > 40000);
  CHECK(test::difference(DataType::bfloat16, sums[0], sums[1]) == "");
  CHECK(test::difference(DataType::bfloat16, sums[0], sums[2]) == "");
}
