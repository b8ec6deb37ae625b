#include "perf/split.h"

#include <map>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;

namespace {

Result<std::optional<Split>> split_of(const std::map<std::string, std::string>& variables) {
  return wanted_split({[&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  }});
}

Groups groups(const std::string& split, int ranks = 8) {
  const auto read = split_of({{"NCCL_TESTS_SPLIT", split}});
  INFO((read ? "" : read.error().what));
  REQUIRE(read);
  REQUIRE(read->has_value());
  CHECK((*read)->given == "NCCL_TESTS_SPLIT=" + split);
  return groups_of(**read, ranks);
}

std::string problem(const std::map<std::string, std::string>& variables) {
  const auto read = split_of(variables);
  REQUIRE_FALSE(read);
  return read.error().what;
}

}  // namespace

TEST_CASE("without a variable, or with an empty one, ranks are not split") {
  CHECK_FALSE((*split_of({})).has_value());
  CHECK_FALSE((*split_of({{"NCCL_TESTS_SPLIT", ""}, {"NCCL_TESTS_SPLIT_MASK", ""}})).has_value());
}

TEST_CASE("a split is by one of four operations, each with two names, in either case") {
  const Groups every_second{{0, {0, 2, 4, 6}}, {1, {1, 3, 5, 7}}};
  for (const char* same : {"AND 0x1", "and1", "&1", "& 0b1", "MOD 2", "mod2", "% 2", "%0x2", "MOD 0b10"}) {
    INFO(same);
    CHECK(groups(same) == every_second);
  }
  CHECK(groups("OR 0x3") == Groups{{3, {0, 1, 2, 3}}, {7, {4, 5, 6, 7}}});
  CHECK(groups("|3") == groups("Or 3"));
  CHECK(groups("DIV 3") == Groups{{0, {0, 1, 2}}, {1, {3, 4, 5}}, {2, {6, 7}}});
  CHECK(groups("/ 3") == groups("div 0x3"));
  CHECK(groups("AND 0") == Groups{{0, {0, 1, 2, 3, 4, 5, 6, 7}}});
}

TEST_CASE("a mask is hexadecimal, and stronger than a split") {
  for (const char* mask : {"10", "0x10"}) {
    const auto read = split_of({{"NCCL_TESTS_SPLIT_MASK", mask}, {"NCCL_TESTS_SPLIT", "DIV 2"}});
    REQUIRE(read);
    CHECK((*read)->color(15) == 0);
    CHECK((*read)->color(17) == 16);
  }
  CHECK(problem({{"NCCL_TESTS_SPLIT_MASK", "g"}}) == "NCCL_TESTS_SPLIT_MASK=g: not a hexadecimal number from 0 to 7fffffff");
  CHECK(problem({{"NCCL_TESTS_SPLIT_MASK", "ffffffff"}}).starts_with("NCCL_TESTS_SPLIT_MASK=ffffffff: "));
}

TEST_CASE("what is no split is named") {
  CHECK(problem({{"NCCL_TESTS_SPLIT", "XOR 3"}}) == "NCCL_TESTS_SPLIT=XOR 3: not AND, OR, MOD or DIV, or & | % /, and a number");
  CHECK(problem({{"NCCL_TESTS_SPLIT", "MOD 0"}}) ==
        "NCCL_TESTS_SPLIT=MOD 0: MOD takes a number from 1 to 2147483647, such as 8, 0x8 or 0b1000");
  for (const char* wrong : {"3", "MOD", "MOD x", "MOD 2 3", "MOD -2", "DIV 0", "AND 0xg", "OR 0b2", "AND 99999999999", " MOD 2"}) {
    INFO(wrong);
    CHECK(problem({{"NCCL_TESTS_SPLIT", wrong}}).starts_with("NCCL_TESTS_SPLIT=" + std::string(wrong) + ": "));
  }
}

TEST_CASE("groups that would not have the same rows are refused") {
  const Split thirds = **split_of({{"NCCL_TESTS_SPLIT", "DIV 3"}});
  const auto said = [&](const SweepOptions& options, int ranks) {
    const Status fit = check_split(options, thirds, groups_of(thirds, ranks));
    return fit ? "" : fit.error().what;
  };
  SweepOptions options;
  CHECK(said(options, 8).empty());
  options.root = 2;
  CHECK(said(options, 9).empty());
  CHECK(said(options, 8) == "NCCL_TESTS_SPLIT=DIV 3: -r 2: no such rank; there are 2, from 0");
  options.root.reset();
  CHECK(said(options, 9).empty());
  CHECK(said(options, 8) == "NCCL_TESTS_SPLIT=DIV 3: with -r all groups of 2 and 3 ranks would have different rows");
  options.limit_seconds = 1;
  CHECK(said(options, 9) == "NCCL_TESTS_SPLIT=DIV 3: with --time-limit groups would end at different rows");
}
