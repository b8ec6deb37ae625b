// Every collective between ranks as threads, over every transport that is there, in and out of place.
#include <fmt/format.h>

#include <array>
#include <random>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/backends.h"
#include "test/engine/job_memory.h"
#include "test/ranks.h"
#include "test/slow_builds.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::run_ranks;

namespace {

/// One call on this rank; empty: its result is right.
std::string checked(Communicator& communicator, const Call& call, bool in_place) {
  test::JobMemory<int32_t> memory(call, communicator.size(), in_place);
  const Rank rank = communicator.rank();
  const Buffers buffers = memory.buffers(rank);
  const Status status = communicator.run(call, buffers.input, buffers.output);
  const std::string wrong = status ? memory.wrong(rank) : status.error().what;
  if (wrong.empty()) return {};
  return fmt::format("{} of {}, root {}{}: {}", name(call.collective), call.count, call.root, in_place ? ", in place" : "", wrong);
}

/// All collectives, one after the other, of all roots.
std::string all_collectives_right(Communicator& communicator, const std::vector<size_t>& counts) {
  std::string wrong;
  for (const size_t count : counts) {
    for (const Collective collective : all_collectives()) {
      for (Rank root = 0; root < (rooted(collective) ? communicator.size() : 1) && wrong.empty(); ++root) {
        const Call call{collective, count, DataType::int32, all_reduce_ops()[count % reduce_op_count], root};
        wrong = checked(communicator, call, false);
        if (wrong.empty() && collective != Collective::all_to_all) wrong = checked(communicator, call, true);
      }
    }
  }
  return wrong;
}

std::string run(const std::string& backend, std::string_view algorithm, int ranks, int channels, const std::vector<size_t>& counts) {
  const auto config = all_configured({"GYRE_TRANSPORT=" + backend, fmt::format("GYRE_ALGORITHM={}", algorithm), "GYRE_SLOT_BYTES=4K",
                                      fmt::format("GYRE_CHANNELS={}", channels)});
  for (const std::string& said : run_ranks(ranks, config, [&](Communicator& c) { return all_collectives_right(c, counts); })) {
    if (!said.empty()) return said;
  }
  return {};
}

std::vector<std::string> algorithms() {
  std::vector<std::string> names{"auto"};
  for (const auto& family : topo::families()) names.emplace_back(family.name);
  return names;
}

}  // namespace

TEST_CASE("every collective is right with every algorithm that has it, and with another where it has not", "[transport]") {
  for (const std::string& algorithm : algorithms()) {
    for (const int ranks : test::sampled(std::array{4, 2, 3, 1, 6})) {
      INFO(algorithm << ", " << ranks << " ranks");
      CHECK(run("loopback", algorithm, ranks, 0, {0, 1, 5, 1000, 3001}) == "");
    }
  }
}

TEST_CASE("every collective is right where ranks are dealt to hosts in turn", "[transport]") {
  for (const std::string& algorithm : test::sampled(algorithms(), 1)) {
    for (const int ranks : {4, 6}) {
      const auto config = [&](Rank rank) {
        return test::configured(
            {"GYRE_TRANSPORT=tcp", "GYRE_ALGORITHM=" + algorithm, "GYRE_SLOT_BYTES=4K", fmt::format("GYRE_HOSTID=host{}", rank % 2)});
      };
      INFO(algorithm << ", " << ranks << " ranks");
      for (const std::string& said : run_ranks(ranks, config, [](Communicator& c) { return all_collectives_right(c, {1, 1000, 3001}); }))
        CHECK(said == "");
    }
  }
}

TEST_CASE("every collective is right over every transport", "[transport]") {
  for (const std::string& backend : test::backends()) {
    for (const std::string& algorithm : test::sampled(algorithms(), 2)) {
      for (const int ranks : {2, 3}) {
        INFO(backend << ", " << algorithm << ", " << ranks << " ranks");
        CHECK(run(backend, algorithm, ranks, 0, {0, 1, 1000, 20000}) == "");
      }
    }
  }
}

TEST_CASE("every collective is right on several channels", "[transport]") {
  const size_t most = test::sanitized ? 10000 : 100000;
  for (const std::string& backend : test::backends()) {
    INFO(backend);
    CHECK(run(backend, "auto", 3, 2, {1, 1000, most}) == "");
    if (backend != "ucx") CHECK(run(backend, "auto", 4, 3, {1, 1000, most}) == "");
  }
}

TEST_CASE("collectives of random kinds and sizes follow each other at once", "[transport]") {
  for (const std::string& backend : test::backends()) {
    const auto words = run_ranks(3, all_configured({"GYRE_TRANSPORT=" + backend, "GYRE_SLOT_BYTES=4K"}), [](Communicator& communicator) {
      std::mt19937 random(7);  // alike on all ranks
      std::string wrong;
      for (int i = 0; i < 200 && wrong.empty(); ++i) {
        const auto collective = static_cast<Collective>(random() % collective_count);
        const size_t count = random() % (size_t{1} << random() % 15);
        const Rank root = rooted(collective) ? static_cast<Rank>(random() % 3) : 0;
        const bool in_place = random() % 2 == 0 && collective != Collective::all_to_all;
        wrong = checked(communicator, {collective, count, DataType::int32, ReduceOp::sum, root}, in_place);
      }
      return wrong;
    });
    INFO(backend);
    for (const std::string& said : words) CHECK(said == "");
  }
}
