// Which form a collective takes between ranks of a host that reach each other's memory, and what a communicator says of it.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/communicator.h"
#include "engine/direct_plan.h"
#include "test/catch.h"
#include "test/engine/direct_bounds.h"
#include "test/folder.h"
#include "test/ranks.h"
#include "test/text.h"
#include "topo/constants.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::contains;
using gyre::test::first_wrong;
using gyre::test::run_ranks;

namespace {

// Of a call on these buffers: the family, its prediction, and the rows of the table that run.
std::string forecast(Communicator& communicator, const Call& call, BufferKind kind) {
  const auto us = communicator.predicted_us(call, kind);
  std::string out = fmt::format("{} {}", *communicator.algorithm(call, kind), us ? *us > 0 : false);
  const std::string table = communicator.explain(call, kind);
  for (const char* form : {"staged", "mapped", "bounced", "attached"}) {
    const size_t at = table.find(form);
    if (at == std::string::npos) continue;
    const std::string row = table.substr(at, table.find('\n', at) - at);
    out += fmt::format(" {}{}", form, row.ends_with("; runs") || row.ends_with("found faster by the calls") ? "!" : "");
  }
  return out;
}

}  // namespace

TEST_CASE("all ranks read all inputs of an all-reduce where that is the faster way") {
  const auto stages = [](int ranks, bool crowded, DataType type, size_t count) {
    const Call call{Collective::all_reduce, count, type, ReduceOp::sum, 0};
    return DirectForms(0, ranks, test::direct_bounds(crowded), 2 << 20, false).plan(call, false, true, true)->staged.has_value();
  };
  for (const int ranks : {2, 4}) {
    for (const auto& [type, most] :
         {std::pair{DataType::float32, size_t{4096}}, {DataType::bfloat16, 4096}, {DataType::int8, 8192}, {DataType::float64, 2048}}) {
      CHECK(stages(ranks, true, type, most));
      CHECK_FALSE(stages(ranks, true, type, most + 1));
    }
    CHECK(stages(ranks, false, DataType::float32, 512));
    CHECK_FALSE(stages(ranks, false, DataType::float32, 513));
  }
}

TEST_CASE("a bounced call goes in pieces of which a bounce buffer has room for two") {
  const auto pieces_of = [](Collective collective, size_t count, DataType type, int ranks, bool crowded) {
    const auto plan = DirectForms(0, ranks, test::direct_bounds(crowded), 2 << 20, false)
                          .plan({collective, count, type, ReduceOp::sum, 0}, false, count > 0, true);
    return plan->bounced ? std::pair(plan->bounced->pieces, plan->bounced->count) : std::pair(size_t{0}, size_t{0});
  };
  const auto pieces = [&](size_t count, DataType type) { return pieces_of(Collective::all_reduce, count, type, 2, false); };
  CHECK(pieces(0, DataType::float32) == std::pair(size_t{0}, size_t{0}));
  CHECK(pieces(512, DataType::float32) == std::pair(size_t{0}, size_t{0}));
  CHECK(pieces(513, DataType::float32) == std::pair(size_t{1}, size_t{513}));
  CHECK(pieces(1 << 18, DataType::float32) == std::pair(size_t{1}, size_t{1} << 18));
  CHECK(pieces((1 << 18) + 1, DataType::float32) == std::pair(size_t{2}, size_t{1} << 18));
  CHECK(pieces((size_t{1} << 30) - 1, DataType::int8) == std::pair(size_t{1024}, size_t{1} << 20));
  const auto blocks = [&](Collective collective, size_t bytes, int ranks, bool crowded) {
    return pieces_of(collective, bytes, DataType::int8, ranks, crowded).first;
  };
  for (const Collective collective : {Collective::reduce_scatter, Collective::all_to_all}) {  // a piece of each rank's block
    CHECK(blocks(collective, 16 << 10, 2, false) == 0);
    CHECK(blocks(collective, (16 << 10) + 1, 2, false) == 1);
    CHECK(blocks(collective, 512 << 10, 2, false) == 1);
    CHECK(blocks(collective, (512 << 10) + 1, 2, false) == 2);
    CHECK(blocks(collective, (256 << 10) + 1, 4, false) == 2);
  }
  CHECK(blocks(Collective::all_gather, 32 << 10, 4, false) == 0);
  CHECK(blocks(Collective::all_gather, (32 << 10) + 1, 4, true) == 1);
  CHECK(blocks(Collective::all_gather, (1 << 20) + 1, 4, false) == 2);
  CHECK(blocks(Collective::reduce_scatter, 256 << 10, 4, true) == 1);
  CHECK(blocks(Collective::reduce_scatter, (256 << 10) + 1, 4, true) == 0);
  CHECK(blocks(Collective::all_to_all, 64 << 10, 4, true) == 0);
  for (const Collective collective : all_collectives()) {
    if (rooted(collective)) CHECK(blocks(collective, 1 << 20, 2, false) == 0);
  }
}

TEST_CASE("blocks are read straight where one copy is the faster way") {
  const auto straight = [](int ranks, bool crowded, Collective collective, size_t block_bytes, size_t bounce_bytes = 0) {
    return DirectForms(0, ranks, test::direct_bounds(crowded), bounce_bytes, true)
        .plan({collective, block_bytes, DataType::int8, ReduceOp::sum, 0}, false, true, true)
        ->read.has_value();
  };
  constexpr size_t shown = transport::Board::slot_bytes;
  for (const Collective collective : all_collectives()) {
    if (reduces(collective)) {
      CHECK_FALSE(straight(2, false, collective, size_t{1} << 30));  // there is no room for what it reads
      const bool scatters = collective == Collective::reduce_scatter;
      CHECK(straight(2, false, collective, size_t{1} << 30, 2 << 20) == scatters);
      CHECK(straight(2, false, collective, 16 << 10, 2 << 20) == scatters);
      CHECK_FALSE(straight(2, false, collective, (16 << 10) - 1, 2 << 20));
      CHECK_FALSE(straight(4, true, collective, 256 << 10, 2 << 20));
      continue;
    }
    const bool by_root = rooted(collective);
    size_t least = 16 << 10;
    if (by_root) least = (collective == Collective::scatter ? shown / 2 : shown) + 1;
    CHECK_FALSE(straight(2, false, collective, least - 1));
    CHECK(straight(2, false, collective, least));
    CHECK(straight(2, false, collective, 2 << 20));
    CHECK(straight(2, false, collective, size_t{1} << 30) == !by_root);
    CHECK_FALSE(straight(3, false, collective, shown + 1));
    CHECK_FALSE(straight(4, true, collective, shown - 1));
    CHECK(straight(4, true, collective, shown + 1) == !by_root);
    CHECK(straight(4, true, collective, (256 << 10) - 1) == !by_root);
    CHECK(straight(4, true, collective, 256 << 10));
    CHECK(straight(4, true, collective, 4 << 20));
    const bool reads_one = collective == Collective::broadcast || collective == Collective::scatter;
    CHECK(straight(4, true, collective, (4 << 20) + 1) == reads_one);
    CHECK(straight(4, true, collective, 16 << 20) == reads_one);
    CHECK_FALSE(straight(4, true, collective, (16 << 20) + 1));
  }
}

namespace {

bool maps(Collective collective, size_t count) {
  return DirectForms(0, 2, test::direct_bounds(false), 0, false)
      .plan({collective, count, DataType::float32, ReduceOp::sum, 0}, false, true, true)
      ->mapped.has_value();
}

}  // namespace

TEST_CASE("a rooted call is mapped only where what its root shows has no room behind a line, so that it meets nobody before") {
  for (const Collective collective : {Collective::broadcast, Collective::reduce, Collective::gather}) {
    CHECK_FALSE(maps(collective, 1024));
    CHECK(maps(collective, 1025));
  }
  CHECK_FALSE(maps(Collective::scatter, 1024));
  CHECK(maps(Collective::scatter, 1025));
}

TEST_CASE("a call is mapped only where a rank would show more than 1 KiB, of which its own block is none") {
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
    INFO(name(collective));
    CHECK_FALSE(maps(collective, 256));
    CHECK(maps(collective, 257));
  }
}

TEST_CASE("the family, the prediction and the table are of what runs on such buffers") {
  const auto words = run_ranks(2, all_configured({"GYRE_TRANSPORT=shm", "GYRE_ATTACH=2"}), [](Communicator& communicator) -> std::string {
    constexpr auto ordinary = BufferKind::ordinary;
    constexpr auto heap = BufferKind::shared_heap;
    const Call small{Collective::all_reduce, 2, DataType::float32, ReduceOp::sum, 0};
    const Call middle{Collective::reduce_scatter, 4000, DataType::float32, ReduceOp::sum, 0};
    const Call copied{Collective::all_reduce, 9000, DataType::float32, ReduceOp::sum, 0};
    const Call large{Collective::reduce, 1 << 20, DataType::float32, ReduceOp::sum, 0};
    const Call sent{Collective::broadcast, 1 << 18, DataType::float32, ReduceOp::sum, 1};
    const Call gathered{Collective::all_gather, 1 << 18, DataType::float32, ReduceOp::sum, 0};
    const Call scaled{Collective::all_reduce, 2, DataType::float32, ReduceOp::premul_sum, 0};
    const std::string messages = (*communicator.plan(large))->schedule().family;
    const std::vector<std::pair<std::string, std::string>> pairs{
        {forecast(communicator, small, ordinary), "one_shot true staged!"},
        {forecast(communicator, small, heap), "one_shot true staged!"},
        {forecast(communicator, middle, ordinary), "one_shot true staged! mapped"},
        {forecast(communicator, middle, heap), "two_shot true staged mapped!"},
        {forecast(communicator, copied, ordinary), "two_shot true bounced!"},
        {forecast(communicator, copied, heap), "two_shot true mapped!"},
        {forecast(communicator, large, ordinary), messages + " true mapped"},
        {forecast(communicator, large, heap), "two_shot true mapped!"},
        {forecast(communicator, gathered, ordinary), "two_shot true attached!"},
        {forecast(communicator, sent, ordinary), "two_shot true attached!"},
        {forecast(communicator, sent, heap), "two_shot true mapped!"},
        {forecast(communicator, gathered, heap), "two_shot true mapped!"},
        {forecast(communicator, scaled, heap), (*communicator.plan(scaled))->schedule().family + " true"}};
    for (const auto& [said, right] : pairs) {
      if (said != right) return fmt::format("'{}' and not '{}'", said, right);
    }
    if (*communicator.predicted_us(large, heap) >= *communicator.predicted_us(large, ordinary)) return "messages are not dearer";
    if (*communicator.predicted_us(copied, heap) >= *communicator.predicted_us(copied, ordinary)) return "copies are free";
    communicator.prefer({"ring", {}});
    for (const BufferKind kind : {ordinary, heap}) {
      if (const std::string said = forecast(communicator, small, kind); said != "ring true") return "named: " + said;
    }
    return {};
  });
  CHECK(first_wrong(words) == "");
}

TEST_CASE("messages that run only where a direct form is declined are chosen by their prices, and not played") {
  const auto words = run_ranks(2, all_configured({"GYRE_TRANSPORT=shm"}), [](Communicator& communicator) -> std::string {
    for (const auto& [collective, count] : {std::pair(Collective::reduce_scatter, size_t{4000}),  // staged or mapped
                                            {Collective::all_reduce, 9000},                       // bounced
                                            {Collective::broadcast, 1 << 18}}) {                  // attached, or by messages
      const std::string table = communicator.explain({collective, count, DataType::float32, ReduceOp::sum, 0});
      const bool rarely = collective != Collective::broadcast;
      if (contains(table, "the weights that decide, by prices") != rarely) return table;
    }
    return {};
  });
  CHECK(first_wrong(words) == "");
}

TEST_CASE("which form runs is what the constants say") {
  const test::Folder folder;
  const std::string file = folder / "constants.json";
  auto text = nlohmann::json::parse(*topo::constants_text(""));
  for (auto& [name, bounds] : text["direct_bounds"].items()) bounds["read_by_all_least_bytes"] = bounds["read_by_all_most_bytes"] = 0;
  std::ofstream(file) << text;
  for (const auto& [constants, family] : {std::pair(std::string(), "one_shot"), {file, "two_shot"}}) {
    const auto config = all_configured({"GYRE_TRANSPORT=shm", "GYRE_CONSTANTS=" + constants});
    const auto words = run_ranks(2, config, [](Communicator& communicator) {
      return *communicator.algorithm({Collective::all_reduce, 2, DataType::float32, ReduceOp::sum, 0});
    });
    CHECK(words == test::Words{family, family});
  }
}

TEST_CASE("constants without direct forms predict none, and the table says so") {
  const std::string path = "direct_test_old_constants.json";
  auto text = nlohmann::json::parse(*topo::constants_text(""));
  text.erase("direct");
  for (auto& machine : text["machines"]) machine.erase("direct");
  std::ofstream(path) << text;
  const auto words = run_ranks(2, all_configured({"GYRE_TRANSPORT=shm", "GYRE_CONSTANTS=" + path}), [](Communicator& communicator) {
    const Call call{Collective::all_reduce, 2, DataType::float32, ReduceOp::sum, 0};
    const auto us = communicator.predicted_us(call);
    const bool said = contains(communicator.explain(call), "refused: the constants have no costs");
    return std::string(us ? "predicted" : said ? "" : "the table does not say so");
  });
  CHECK(first_wrong(words) == "");
  std::filesystem::remove(path);
}
