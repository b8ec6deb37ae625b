// What GYRE_EXPLAIN has rank 0 say of the calls of a communicator on host memory.
#include "engine/explanations.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/gpu_rows.h"
#include "test/folder.h"
#include "test/kept_log.h"
#include "test/ranks.h"
#include "test/text.h"
#include "topo/constants.h"

using namespace gyre;
using namespace gyre::engine;

namespace {

/// Three all-reduces of two kinds.
std::string three_calls(Communicator& all) {
  std::vector<float> data(2000);
  for (const size_t count : {1500u, 1100u, 2u}) {
    if (const Status ran = all.all_reduce(data.data(), data.data(), count, DataType::float32, ReduceOp::sum); !ran) return ran.error().what;
  }
  return {};
}

test::Words run_explained(const char* wanted) {
  return test::run_ranks(2, test::all_configured({"GYRE_TRANSPORT=loopback", "GYRE_ALGORITHM=ring", wanted}), three_calls);
}

/// Constants by which every host has these times of a ring's all-reduce between two ranks, of blocks of 4096 and 8192 bytes.
void write_with_times(const std::string& file, double us, double twice_us) {
  auto constants = nlohmann::ordered_json::parse(*topo::constants_text(""));
  for (auto& [name, machine] : constants["machines"].items()) {
    if (!name.starts_with("host")) continue;
    machine["measured"] = {{{"collective", "all_reduce"},
                            {"ranks", 2},
                            {"bytes", {4096, 8192}},
                            {"times", {{{"algorithm", "ring"}, {"grid", nlohmann::json::array()}, {"us", {us, twice_us}}}}}}};
  }
  std::ofstream(file) << constants;
}

}  // namespace

TEST_CASE("each kind of call is explained once, by one rank and whatever is logged, and counted at the end") {
  const test::KeptLog log(log::Level::error);
  CHECK(test::first_wrong(run_explained("GYRE_EXPLAIN=1")) == "");
  CHECK(log.count("explain: all_reduce, blocks of 4096 to 8191 bytes: ring runs, predicted ") == 1);
  CHECK(log.count("explain: all_reduce, blocks of 8 to 15 bytes: ring runs, predicted ") == 1);
  CHECK(log.count("halving_doubling") == 2);  // what could run, too
  CHECK(log.count("explain: all_reduce, blocks of 4096 to 8191 bytes: ring ran 2 times") == 1);
  CHECK(log.count("explain: all_reduce, blocks of 8 to 15 bytes: ring ran 1 times") == 1);
  CHECK(log.count("explain:") == 4);
}

TEST_CASE("a direct form is explained beside the best by messages, and two ways of which calls find the faster as such") {
  const auto run = [](const char* attach) {
    const auto config = test::all_configured({"GYRE_TRANSPORT=shm", "GYRE_EXPLAIN=1", attach});
    return test::first_wrong(test::run_ranks(2, config, [](Communicator& all) -> std::string {
      std::vector<std::byte> input(100000), output(2 * input.size());
      for (const size_t count : {size_t{20}, input.size(), size_t{20000}}) {
        for (int i = 0; i < 20; ++i) {
          const Status ran = all.run({Collective::all_gather, count, DataType::int8, ReduceOp::sum, 0}, input.data(), output.data());
          if (!ran) return ran.error().what;
        }
      }
      return {};
    }));
  };
  const std::string small = "explain: all_gather, blocks of 16 to 31 bytes: ",
                    middle = "explain: all_gather, blocks of 16384 to 32767 bytes: ",
                    large = "explain: all_gather, blocks of 65536 to 131071 bytes: ";
  {
    const test::KeptLog log(log::Level::error);
    REQUIRE(run("GYRE_ATTACH=1") == "");
    CHECK(log.count(small + "one_shot runs, staged, predicted ") == 1);
    CHECK(log.count(" us; by messages ") == 1);
    CHECK(log.count(middle + "two_shot, attached, predicted ") == 1);
    CHECK(log.count(" us, or one_shot, staged, predicted ") == 1);
    CHECK(log.count(large + "two_shot, attached, predicted ") == 1);
    CHECK(log.count(" us, or two_shot, bounced, predicted ") == 1);
    CHECK(log.count(" us: found by the calls") == 2);
    CHECK(log.count(" us: found by the calls; by messages ") == 2);
    CHECK(log.count(small + "one_shot ran 20 times") == 1);
    CHECK(log.count(middle + "two_shot or one_shot, found by the calls, ran 20 times") == 1);
    CHECK(log.count(large + "two_shot, attached or bounced, found by the calls, ran 20 times") == 1);
    CHECK(log.count("two_shot straight, of these, ran ") == 2);
  }
  const test::KeptLog log(log::Level::error);
  REQUIRE(run("GYRE_ATTACH=2") == "");
  CHECK(log.count(large + "two_shot runs, attached, predicted ") == 1);
  CHECK(log.count(large + "two_shot ran 20 times") == 1);
  CHECK(log.count("found by the calls") == 0);
}

TEST_CASE("who does not ask is told nothing") {
  const test::KeptLog log;
  CHECK(test::first_wrong(run_explained("GYRE_EXPLAIN=0")) == "");
  CHECK_FALSE(log.has("explain:"));
}

TEST_CASE("where a choice goes by times, what is predicted are these, in the table, too") {
  const test::Folder folder;
  write_with_times(folder / "constants.json", 4321, 8642);
  const auto config =
      test::all_configured({"GYRE_TRANSPORT=loopback", "GYRE_ALGORITHM=ring", "GYRE_CONSTANTS=" + folder / "constants.json"});
  const auto words = test::run_ranks(2, config, [](Communicator& all) -> std::string {
    for (const auto& [count, wanted] : {std::pair(1024, 4321.), {2048, 8642.}}) {
      const Call call{Collective::all_reduce, static_cast<size_t>(count), DataType::float32, ReduceOp::sum, 0};
      const auto us = all.predicted_us(call);
      if (!us || std::abs(*us - wanted) > 1e-6 * wanted) return fmt::format("predicted {}", us ? *us : -1);
      const std::string table = all.explain(call);
      if (!test::contains(table, fmt::format("\n{:<41} {:>12.1f} {:>12.1f} ", "ring                                    1", wanted, wanted)))
        return table;
    }
    return "";
  });
  CHECK(test::first_wrong(words) == "");
}

TEST_CASE("where a choice goes by simulation, what is predicted is the simulated time, in the table, too") {
  const auto on_own_hosts = [](Rank rank) { return test::configured({"GYRE_TRANSPORT=tcp", fmt::format("GYRE_HOSTID=host{}", rank)}); };
  const auto words = test::run_ranks(4, on_own_hosts, [](Communicator& all) -> std::string {
    const Call call{Collective::all_reduce, 100000, DataType::float32, ReduceOp::sum, 0};
    const std::string table = all.explain(call);
    std::istringstream best(table.substr(table.find("held up by")));  // the line after the one that ends so
    std::string family, channels, time, weight, rest;
    std::getline(best, rest) >> family >> channels >> time >> weight;
    std::getline(best, rest);
    if (!test::contains(rest, "by its simulated time, not its price") || time != weight) return table;
    const auto us = all.predicted_us(call);
    return us && std::abs(*us - std::stod(time)) <= 0.1 ? "" : fmt::format("predicted {}, and\n{}", us ? *us : -1, table);
  });
  CHECK(test::first_wrong(words) == "");
}

TEST_CASE("an algorithm whose scratch does not fit is refused in the table, with the reason") {
  const auto config = test::all_configured({"GYRE_TRANSPORT=loopback", "GYRE_ALGORITHM=halving_doubling", "GYRE_MEMORY_BYTES=4M"});
  const auto words = test::run_ranks(4, config, [](Communicator& all) -> std::string {
    const std::string table = all.explain({Collective::reduce_scatter, 1 << 20, DataType::float32, ReduceOp::sum, 0});
    const size_t row = table.find("\nhalving_doubling ");
    const std::string refused = table.substr(std::min(row, table.size()));
    return test::contains(refused.substr(0, refused.find('\n', 1)),
                          "1 refused: needs 8388608 bytes of scratch, GYRE_MEMORY_BYTES=4194304 leaves ")
               ? ""
               : table;
  });
  CHECK(test::first_wrong(words) == "");
}

TEST_CASE("by which channels over GPUs a schedule goes is said with what runs") {
  const auto run = [](const char* channels) {
    const auto config = test::all_configured({"GYRE_TRANSPORT=loopback", "GYRE_ALGORITHM=ring", "GYRE_EXPLAIN=1", channels});
    return test::first_wrong(test::run_ranks(5, config, [](Communicator& all) -> std::string {
      const auto made = all.split(0, all.rank(), nullptr, test::row_of_circle(all.rank(), 5, 2));
      return made ? three_calls(**made) : made.error().what;
    }));
  };
  const test::KeptLog log(log::Level::error);
  CHECK(run("GYRE_CHANNELS=2") == "");
  CHECK(log.count(
            ": ring runs, along 2 channels over GPUs (ports near these: mlx5_0:1, mlx5_1:1, mlx5_2:1, mlx5_3:1, mlx5_4:1), predicted ") ==
        2);
  CHECK(run("GYRE_CHANNELS=1") == "");
  CHECK(log.count(
            ": ring runs, in the order of their places (ports near these: mlx5_0:1, mlx5_1:1, mlx5_2:1, mlx5_3:1, mlx5_4:1), predicted ") ==
        2);
}
