// All-reduces between ranks as threads, over every transport that is there, against perf/reference.h.
#include "engine/communicator.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <random>

#include "perf/reference.h"
#include "test/catch.h"
#include "test/engine/backends.h"
#include "test/ranks.h"
#include "test/slow_builds.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::first_wrong;
using gyre::test::run_ranks;
using gyre::test::Words;

namespace {

std::string settings(std::string_view name, std::string_view value) { return fmt::format("GYRE_{}={}", name, value); }

/// Runs one call on this rank and says what is wrong with its result; empty: nothing.
std::string checked_sum(Communicator& communicator, const Call& call, bool in_place) {
  // The 16 bytes behind the elements must stay as they are.
  const size_t bytes = call.count * size_of(call.type);
  std::vector<std::byte> input(bytes + 16, std::byte{0x5a});
  std::vector<std::byte> output(bytes + 16, std::byte{0x5a});
  perf::fill_input(input.data(), call.count, call.type, call.op, communicator.rank(), communicator.size());
  const std::vector<std::byte> before = input;
  std::vector<std::byte>& result = in_place ? input : output;
  const std::string what = fmt::format("{} elements of {} {}{}: ", call.count, name(call.type), name(call.op), in_place ? " in place" : "");
  const Status status = communicator.all_reduce(input.data(), result.data(), call.count, call.type, call.op);
  if (!status) return what + status.error().what;
  if (const size_t wrong = perf::count_wrong(result.data(), call.count, call.type, call.op, communicator.size()); wrong != 0) {
    return what + fmt::format("{} wrong", wrong);
  }
  if (!in_place && input != before) return what + "the input was written";
  for (size_t i = bytes; i < result.size(); ++i) {
    if (result[i] != std::byte{0x5a}) return what + "written past the end";
  }
  return {};
}

std::string checked_both_ways(Communicator& communicator, const Call& call) {
  std::string wrong = checked_sum(communicator, call, false);
  return wrong.empty() ? checked_sum(communicator, call, true) : wrong;
}

std::vector<size_t> interesting_counts(int ranks) {
  const auto n = static_cast<size_t>(ranks);
  const size_t slot = 4096 / sizeof(float);
  return {0, 1, 2, n - 1, n, n + 1, 1000, slot - 1, slot, slot + 1, 3 * slot * n + 7};
}

void check_sizes(const std::string& backend, const std::vector<int>& sizes, int channels) {
  for (const auto& family : test::sampled(topo::families(), 2)) {
    for (const int ranks : sizes) {
      const auto config = all_configured({settings("TRANSPORT", backend), settings("ALGORITHM", family.name), settings("SLOT_BYTES", "4K"),
                                          settings("CHANNELS", std::to_string(channels))});
      INFO(backend << ", " << family.name << ", " << ranks << " ranks, " << channels << " channels");
      CHECK(first_wrong(run_ranks(ranks, config, [&](Communicator& communicator) {
              std::string wrong;
              for (const size_t count : interesting_counts(ranks)) {
                if (wrong.empty())
                  wrong = checked_both_ways(communicator, {Collective::all_reduce, count, DataType::float32, ReduceOp::sum});
              }
              return wrong;
            })) == "");
    }
  }
}

void check_types(const std::string& backend, int ranks) {
  for (const auto& family : test::sampled(topo::families())) {
    const auto config = all_configured({settings("TRANSPORT", backend), settings("ALGORITHM", family.name), settings("SLOT_BYTES", "4K")});
    INFO(backend << ", " << family.name << ", " << ranks << " ranks");
    CHECK(first_wrong(run_ranks(ranks, config, [](Communicator& communicator) {
            std::string wrong;
            for (const DataType type : test::sampled(all_data_types())) {
              for (const ReduceOp op : all_reduce_ops()) {
                if (wrong.empty()) wrong = checked_both_ways(communicator, {Collective::all_reduce, 1111, type, op});
              }
            }
            return wrong;
          })) == "");
  }
}

constexpr size_t random_floats = 5000;

/// The bits of reductions of random floats on every rank; those of all-reduces first, which all ranks have alike.
Words float_bits(const std::string& backend, std::string_view family) {
  const auto config = all_configured({settings("TRANSPORT", backend), settings("ALGORITHM", family), settings("SLOT_BYTES", "4K")});
  return run_ranks(4, config, [](Communicator& communicator) -> std::string {
    std::mt19937 random(static_cast<uint32_t>(communicator.rank()));
    std::string bits;
    for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::reduce}) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::avg}) {
        std::vector<float> data(random_floats);
        for (float& x : data) x = std::uniform_real_distribution<float>(-2, 2)(random);
        std::vector<float> result(random_floats);
        const size_t count = collective == Collective::reduce_scatter ? random_floats / 4 : random_floats;
        const Status status = communicator.run({collective, count, DataType::float32, op, 2}, data.data(), result.data());
        if (!status) return fmt::format("rank {}: {}", communicator.rank(), status.error().what);
        bits.append(reinterpret_cast<const char*>(result.data()), result.size() * sizeof(float));
      }
    }
    return bits;
  });
}

}  // namespace

TEST_CASE("all_reduce is right for all sizes, in place and out of place", "[transport]") {
  for (const std::string& backend : test::backends()) {
    check_sizes(backend, backend == "ucx" ? std::vector{2, 3} : test::sampled(std::array{5, 2, 3, 1, 4, 8}), 0);
  }
}

TEST_CASE("all_reduce is right on two channels", "[transport]") {
  for (const std::string& backend : test::backends()) check_sizes(backend, {1, 3, 4}, 2);
}

TEST_CASE("all_reduce is right for every type and operation", "[transport]") {
  for (const std::string& backend : test::backends()) {
    check_types(backend, 3);
    check_types(backend, 4);
  }
}

TEST_CASE("the family is chosen by size where nobody names one, and the choice is one rank's as the others'", "[transport]") {
  CHECK(first_wrong(run_ranks(3, all_configured({settings("TRANSPORT", "loopback")}), [](Communicator& communicator) -> std::string {
          for (const size_t count : {size_t{1}, size_t{300000}}) {
            const Call call{Collective::all_reduce, count, DataType::float32, ReduceOp::sum, 0};
            const auto plan = communicator.plan(call);
            if (!plan) return plan.error().what;
            const auto families = communicator.bootstrap().all_gather((*plan)->schedule().family);
            if (!families) return families.error().what;
            if (*families != std::vector<std::string>(3, families->front())) return "ranks took different families";
            if ((families->front() == "one_shot") != (count == 1)) return "took " + families->front();
            if (std::string wrong = checked_both_ways(communicator, call); !wrong.empty()) return wrong;
          }
          return {};
        })) == "");
}

TEST_CASE("random floats give the same bits on every rank and in every run", "[transport]") {
  for (const std::string& backend : test::backends()) {
    std::vector<std::string_view> algorithms{"auto"};
    for (const auto& family : topo::families()) algorithms.push_back(family.name);
    for (const std::string_view algorithm : algorithms) {
      INFO(backend << ", " << algorithm);
      const Words first = float_bits(backend, algorithm);
      const Words second = float_bits(backend, algorithm);
      constexpr size_t alike = 3 * random_floats * sizeof(float);
      for (size_t rank = 0; rank < first.size(); ++rank) {
        REQUIRE(first[rank].size() == 3 * alike);
        CHECK((first[rank].substr(0, alike) == first[0].substr(0, alike)));  // in brackets: bits are not to be printed
        CHECK((second[rank] == first[rank]));
      }
    }
  }
}

TEST_CASE("calls of different plans follow each other at once, more of them than are kept", "[transport]") {
  for (const std::string& backend : test::backends()) {
    const auto config = all_configured({settings("TRANSPORT", backend), settings("SLOT_BYTES", "4K")});
    INFO(backend);
    CHECK(first_wrong(run_ranks(3, config, [](Communicator& communicator) {
            std::string wrong;
            for (size_t i = 0; i < 300 && wrong.empty(); ++i) {
              const DataType type = all_data_types()[i % data_type_count];
              wrong = checked_sum(communicator, {Collective::all_reduce, i * 37 % 1500, type, all_reduce_ops()[i % 4]}, i % 3 == 0);
            }
            return wrong;
          })) == "");
  }
}

TEST_CASE("a communicator knows its rank, its size and by what it reaches the others", "[transport]") {
  CHECK(first_wrong(run_ranks(3, all_configured({settings("TRANSPORT", "shm")}), [](Communicator& communicator) {
          std::vector<std::string> expected(3, "shm");
          expected[static_cast<size_t>(communicator.rank())].clear();
          return std::string(communicator.transports() == expected && communicator.size() == 3 ? "" : "wrong");
        })) == "");
}
