// Collectives on a GPU's streams: the same bits as on the host, in the order of streams.
#include <fmt/format.h>

#include <span>

#include "test/catch.h"
#include "test/engine/device_ranks.h"
#include "test/engine/gpu_rows.h"
#include "test/slow_builds.h"
#include "test/text.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::engine;
using test::DeviceRank;
using test::run_device_ranks;
using test::same_bits;

namespace {

const std::vector<std::string> settings{"GYRE_TRANSPORT=loopback", "GYRE_SLOT_BYTES=4K"};

std::vector<std::string> with(const std::string& setting) {
  auto all = settings;
  all.push_back(setting);
  return all;
}

/// A third, so to speak, in each type.
uint64_t scalar_of(const Call& call, Rank rank) {
  return call.op == ReduceOp::premul_sum ? kernels::avg_scalar_bits(call.type, 3 + rank) : 0;
}

std::string every_collective(DeviceRank& on, HandOff hand_off, size_t count) {
  for (const Collective collective : all_collectives()) {
    for (Rank root = 0; root < (rooted(collective) ? on.size() : 1); ++root) {
      for (const bool in_place : {false, true}) {
        if (in_place && collective == Collective::all_to_all) continue;
        const Call call{collective, count, DataType::float32, ReduceOp::sum, root};
        if (std::string wrong = same_bits(on, call, hand_off, in_place); !wrong.empty()) return wrong;
      }
    }
  }
  return {};
}

std::string every_operation(DeviceRank& on, HandOff hand_off, size_t count) {
  for (const DataType type : all_data_types()) {
    for (size_t op = 0; op < every_reduce_op_count; ++op) {
      Call call{Collective::all_reduce, count, type, static_cast<ReduceOp>(op), 0};
      call.scalar = scalar_of(call, on.rank());
      if (std::string wrong = same_bits(on, call, hand_off, op % 2 == 0); !wrong.empty()) return wrong;
    }
  }
  return {};
}

}  // namespace

TEST_CASE("every collective of every algorithm gives the host's bits on a device", "[device]") {
  size_t turn = 0;
  for (const auto& family : test::sampled(topo::families(), 1)) {
    for (const int ranks : test::sampled(std::array{3, 2, 4, 1})) {
      INFO(family.name << ", " << ranks << " ranks");
      CHECK(run_device_ranks(
                ranks, with(fmt::format("GYRE_ALGORITHM={}", family.name)),
                [](DeviceRank& on) {
                  std::string wrong;
                  for (const HandOff hand_off : test::both_hand_offs) wrong = wrong.empty() ? every_collective(on, hand_off, 1501) : wrong;
                  return wrong;
                },
                test::every_reach.at(turn++ % 3)) == "");
    }
  }
}

TEST_CASE("every type and operation gives the host's bits on a device", "[device]") {
  size_t turn = 0;
  for (const char* family : {"ring", "one_shot", "two_shot", "tree"}) {
    for (const int ranks : test::sampled(std::array{3, 2})) {
      INFO(family << ", " << ranks << " ranks");
      CHECK(run_device_ranks(
                ranks, with(fmt::format("GYRE_ALGORITHM={}", family)),
                [](DeviceRank& on) {
                  std::string wrong;
                  for (const HandOff hand_off : test::both_hand_offs) wrong = wrong.empty() ? every_operation(on, hand_off, 533) : wrong;
                  return wrong;
                },
                test::every_reach.at(turn++ % 3)) == "");
    }
  }
}

TEST_CASE("every collective of every type gives the host's bits on 5 and 8 ranks' devices", "[device]") {
  for (const int ranks : test::sampled(std::array{5, 8})) {
    INFO(ranks << " ranks");
    CHECK(run_device_ranks(ranks, settings, [](DeviceRank& on) -> std::string {
            size_t turn = 0;
            for (const Collective collective : all_collectives()) {
              for (const DataType type : all_data_types()) {
                const Call call{collective, 131, type, ReduceOp::sum, rooted(collective) ? on.size() - 1 : 0};
                if (std::string wrong = same_bits(on, call, test::both_hand_offs.at(turn++ % 2), false); !wrong.empty()) return wrong;
              }
            }
            return {};
          }) == "");
  }
}

TEST_CASE("reductions of many sources give the host's bits on a device", "[device]") {
  for (const char* family : {"one_shot", "two_shot"}) {
    INFO(family);
    CHECK(run_device_ranks(6, with(fmt::format("GYRE_ALGORITHM={}", family)), [](DeviceRank& on) {
            std::string wrong;
            for (const HandOff hand_off : test::both_hand_offs) wrong = wrong.empty() ? every_operation(on, hand_off, 97) : wrong;
            return wrong;
          }) == "");
  }
}

TEST_CASE("one rank alone runs ahead of no ring", "[device]") {
  CHECK(run_device_ranks(1, settings, [](DeviceRank& on) {
          return same_bits(on, {Collective::all_gather, 3'000'000, DataType::float32, ReduceOp::sum, 0}, HandOff::stays, false);
        }) == "");
}

TEST_CASE("collectives of all sizes on 8 ranks and several channels give the host's bits on a device", "[device]") {
  size_t turn = 0;
  for (const char* family : {"ring", "double_tree", "halving_doubling"}) {
    auto more = with(fmt::format("GYRE_ALGORITHM={}", family));
    more.emplace_back("GYRE_CHANNELS=2");
    CHECK(run_device_ranks(
              8, more,
              [](DeviceRank& on) {
                std::string wrong;
                for (const size_t count : {size_t{0}, size_t{1}, size_t{17}, size_t{40001}}) {
                  for (const HandOff hand_off : test::both_hand_offs) {
                    const Call call{Collective::all_reduce, count, DataType::float16, ReduceOp::avg, 0};
                    if (wrong.empty()) wrong = same_bits(on, call, hand_off, count % 2 == 0);
                  }
                }
                return wrong;
              },
              test::every_reach.at(turn++ % 3)) == "");
  }
}

TEST_CASE("collectives on a device go over every transport", "[device]") {
  for (const char* transport : {"shm", "tcp"}) {
    for (const test::Reach reach : test::every_reach) {
      // That two mappings of one process are the same memory, by which one rank's kernel comes after another's, no sanitizer sees.
      if (test::sanitized && reach != test::Reach::none && transport == std::string_view("shm")) continue;
      INFO(transport << ", reach " << static_cast<int>(reach));
      CHECK(run_device_ranks(
                3, {std::string("GYRE_TRANSPORT=") + transport, "GYRE_SLOT_BYTES=8K"},
                [](DeviceRank& on) {
                  std::string wrong;
                  for (const HandOff hand_off : test::both_hand_offs) wrong = wrong.empty() ? every_collective(on, hand_off, 9001) : wrong;
                  return wrong;
                },
                reach) == "");
    }
  }
}

TEST_CASE("a collective comes after what its stream was given before, and before what comes next", "[device]") {
  for (const HandOff hand_off : test::both_hand_offs) {
    CHECK(run_device_ranks(2, settings, [&](DeviceRank& on) -> std::string {
            test::DeviceArray<int> values(on, std::vector<int>(3000));
            const std::vector<int> ones(values.size(), 1);
            constexpr size_t times = 20;
            // CUDA's copy to memory that is not pinned returns only after its turn, and holds up what other ranks call meanwhile.
            const auto pinned = on.gpu.gpu().allocate_pinned(times * values.size() * sizeof(int));
            if (!pinned) return pinned.error().what;
            const std::span seen(reinterpret_cast<int*>(pinned->get()), times * values.size());
            const Call call{Collective::all_reduce, values.size(), DataType::int32, ReduceOp::sum, 0};
            for (size_t i = 0; i < times; ++i) {
              on.stream.add([] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
              on.stream.copy(values.data(), ones.data(), ones.size() * sizeof(int));
              if (Status status = on.device.enqueue(call, values.data(), values.data(), on.stream.handle(), hand_off); !status)
                return status.error().what;
              on.stream.copy(&seen[i * values.size()], values.data(), values.size() * sizeof(int));
            }
            if (Status status = on.device.finish(); !status) return status.error().what;
            if (!on.stream.done()) return "the stream does not end";
            return std::all_of(seen.begin(), seen.end(), [](int now) { return now == 2; }) ? "" : "read too early";
          }) == "");
  }
}

TEST_CASE("long collectives of several streams take turns on one communicator", "[device]") {
  CHECK(run_device_ranks(4, settings, [](DeviceRank& on) -> std::string {
          const auto other = on.gpu.open_stream();
          std::vector<test::DeviceArray<float>> sums;
          for (const size_t count : std::initializer_list<size_t>{100, 90000, 100, 90000, 100, 90000})
            sums.emplace_back(on, std::vector<float>(count, 1));
          if (!on.stream.done()) return "nothing was copied";
          for (size_t i = 0; i < sums.size(); ++i) {
            const Call call{Collective::all_reduce, sums[i].size(), DataType::float32, ReduceOp::sum, 0};
            void* const stream = i % 3 == 0 ? other->handle() : on.stream.handle();
            if (Status status = on.device.enqueue(call, sums[i].data(), sums[i].data(), stream); !status) return status.error().what;
          }
          if (!other->done()) return "a stream does not end";
          return std::all_of(sums.begin(), sums.end(), [](auto& sum) { return sum.all(4); }) ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("ranks that know where their GPUs are send along the links between these, on each channel its own, with the host's bits",
          "[device]") {
  for (const auto& [hand_off, reach] : std::span(test::every_way).last(2)) {
    std::vector<std::string> rings = with("GYRE_ALGORITHM=ring");
    rings.push_back("GYRE_CHANNELS=2");
    for (const auto& configured : {rings, settings}) {
      CHECK(run_device_ranks(
                5, configured,
                [hand_off = hand_off](DeviceRank& on) -> std::string {
                  const Call call{Collective::all_reduce, 1000, DataType::float32, ReduceOp::sum, 0};
                  const bool known = test::contains((*on.host.plan(call))->text(), " order=");
                  return known || on.size() < 5 ? every_collective(on, hand_off, 2000) : "ranks have no order";
                },
                reach, [](Rank rank, int ranks) { return test::row_of_circle(rank, ranks, 2); }) == "");
    }
  }
}
