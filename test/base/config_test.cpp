#include "base/config.h"

#include <fmt/format.h>

#include <type_traits>

#include "test/catch.h"
#include "test/text.h"

using namespace gyre;
using gyre::test::contains;

namespace {

std::string error_of(const std::vector<std::string>& environment) {
  const auto config = Config::from(environment);
  return config ? "" : config.error().what;
}

struct Trial {
  std::string name;
  std::string right;
  std::vector<std::string> wrong;  ///< none for free text
};

/// For every option a value that it takes, which is not its default, and such as it refuses.
std::vector<Trial> trials() {
  std::vector<Trial> all;
  Config().each([&](const auto& option) {
    Trial trial{std::string(option.name), "text", {}};
    if constexpr (std::is_same_v<std::decay_t<decltype(*option)>, size_t>) {
      trial.right = std::to_string(option.most);
      trial.wrong = {"many", "-1", "", std::to_string(option.most + 1), std::to_string(option.least - 1)};
    } else if (!option.choices.empty()) {
      trial.right = option.choices.back();
      trial.wrong = {"nonsense", option.list ? "," : "", fmt::format("{} ", option.choices.back())};
    }
    all.push_back(trial);
  });
  return all;
}

}  // namespace

TEST_CASE("every option takes a right value and says where it came from") {
  for (const Trial& trial : trials()) {
    INFO(trial.name << "=" << trial.right);
    const auto config = Config::from({trial.name + "=" + trial.right});
    REQUIRE(config);
    config->each([&](const auto& option) {
      const bool set = option.name == trial.name;
      if (set) CHECK(fmt::format("{}", *option) == trial.right);
      CHECK(option.origin == (set ? "environment" : "default"));
    });
  }
}

TEST_CASE("every option refuses wrong values and names itself and the value") {
  for (const Trial& trial : trials()) {
    for (const std::string& wrong : trial.wrong) {
      const auto config = Config::from({trial.name + "=" + wrong});
      INFO(trial.name << "=" << wrong);
      REQUIRE_FALSE(config);
      CHECK(config.error().code == Code::invalid_argument);
      CHECK(config.error().what.starts_with(trial.name + "=" + wrong + ": must be "));
    }
  }
}

TEST_CASE("an unknown name is an error that says the nearest right one") {
  CHECK(error_of({"GYRE_TRANSPROT=shm"}) == "GYRE_TRANSPROT is not an option of gyre; did you mean GYRE_TRANSPORT?");
  CHECK(error_of({"GYRE_SLOTBYTES=4K"}) == "GYRE_SLOTBYTES is not an option of gyre; did you mean GYRE_SLOT_BYTES?");
  CHECK(error_of({"GYRE_QQQQQQQQQQQQQQQQ=1"}) == "GYRE_QQQQQQQQQQQQQQQQ is not an option of gyre; gyre-perf --options lists all");
}

TEST_CASE("names of others are passed over") {
  CHECK(Config::from({"PATH=/bin", "NCCL_DEBUG=INFO", "GYRE_LOG", "MY_GYRE_LOG=nonsense", "gyre_log=x", ""}));
}

TEST_CASE("a wrong choice is told all right ones and the nearest") {
  CHECK(error_of({"GYRE_ALGORITHM=rign"}) ==
        "GYRE_ALGORITHM=rign: must be one of auto, naive, ring, tree, double_tree, halving_doubling, bucket, hierarchical, "
        "leaders, one_shot, two_shot, pat, chained_tree; did you mean ring?");
  CHECK(error_of({"GYRE_WAIT=slep"}) == "GYRE_WAIT=slep: must be one of auto, spin, yield, sleep; did you mean sleep?");
  CHECK(error_of({"GYRE_LOG=everything"}) == "GYRE_LOG=everything: must be one of error, warn, info, debug");
}

TEST_CASE("a list has any of the words, and the wrong one is told") {
  CHECK(*Config::from({})->collectives == "");
  CHECK(*Config::from({"GYRE_COLLECTIVES="})->collectives == "");
  CHECK(*Config::from({"GYRE_COLLECTIVES=broadcast,all_reduce"})->collectives == "broadcast,all_reduce");
  CHECK(error_of({"GYRE_COLLECTIVES=all_reduce,redcue"}) ==
        "GYRE_COLLECTIVES=all_reduce,redcue: must be some, with commas, of all_reduce, reduce_scatter, all_gather, broadcast, reduce, "
        "alltoall, gather, scatter; did you mean reduce?");
}

TEST_CASE("what is no number is told what one looks like") {
  CHECK(error_of({"GYRE_SLOTS=eight"}) == "GYRE_SLOTS=eight: must be a number, such as 8 (K, M, G allowed)");
}

TEST_CASE("a number out of range or off the grid is told the nearest right value") {
  CHECK(error_of({"GYRE_SLOTS=1"}) == "GYRE_SLOTS=1: must be from 2 to 256; the nearest right value is 2");
  CHECK(error_of({"GYRE_SLOTS=1K"}) == "GYRE_SLOTS=1K: must be from 2 to 256; the nearest right value is 256");
  const std::string rule = "must be from 4096 to 67108864 and a multiple of 4096; the nearest right value is ";
  CHECK(error_of({"GYRE_SLOT_BYTES=1"}) == "GYRE_SLOT_BYTES=1: " + rule + "4096");
  CHECK(error_of({"GYRE_SLOT_BYTES=8200"}) == "GYRE_SLOT_BYTES=8200: " + rule + "8192");
  CHECK(error_of({"GYRE_SLOT_BYTES=1G"}) == "GYRE_SLOT_BYTES=1G: " + rule + "67108864");
}

TEST_CASE("sizes take K, M and G") {
  CHECK(*Config::from({"GYRE_SLOT_BYTES=16K"})->slot_bytes == 16 << 10);
  CHECK(*Config::from({"GYRE_SLOT_BYTES=2mb"})->slot_bytes == 2 << 20);
}

TEST_CASE("what verbs does is chosen by options that a wrong value does not pass") {
  const auto config = Config::from({"GYRE_TRANSPORT=verbs", "GYRE_FALLBACK=tcp", "GYRE_IB_CONFIRM=1", "GYRE_PINNED_BYTES=64G"});
  REQUIRE(config);
  CHECK(*config->transport == "verbs");
  CHECK(*config->fallback == "tcp");
  CHECK(*config->ib_confirm == 1);
  CHECK(*config->pinned_bytes == size_t{64} << 30);
  CHECK(*Config::from({})->fallback == "none");
  CHECK(error_of({"GYRE_FALLBACK=tpc"}) == "GYRE_FALLBACK=tpc: must be one of none, tcp; did you mean tcp?");
  CHECK(error_of({"GYRE_IB_CONFIRM=2"}) == "GYRE_IB_CONFIRM=2: must be from 0 to 1; the nearest right value is 1");
}

TEST_CASE("a value set later wins and brings its origin") {
  auto config = Config::from({"GYRE_TRANSPORT=shm"});
  REQUIRE(config);
  REQUIRE(config->set("GYRE_TRANSPORT", "loopback", "--transport"));
  CHECK(*config->transport == "loopback");
  CHECK(config->transport.origin == "--transport");
}

TEST_CASE("the table lists every option with value, origin and sentence") {
  auto config = Config::from({"GYRE_SLOTS=4"});
  REQUIRE(config);
  const std::string table = config->table();
  size_t options = 0;
  config->each([&](const auto& option) {
    ++options;
    INFO(option.name);
    CHECK(contains(table, fmt::format("\n{:<16} ", option.name)));
    CHECK(contains(table, fmt::format(" {}\n", option.sentence)));
    CHECK_FALSE(option.sentence.empty());
  });
  CHECK(static_cast<size_t>(std::count(table.begin(), table.end(), '\n')) == options + 1);
  CHECK(contains(table, fmt::format("\n{:<16} {:<10} {:<12} ", "GYRE_SLOTS", 4, "environment")));
}
