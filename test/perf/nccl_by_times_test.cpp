#include "perf/nccl_by_times.h"

#include <algorithm>

#include "perf/nccl_forced.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;

namespace {

const std::string nccl_chooses(nccls_own);

std::vector<std::string> chosen(const std::map<std::string, RoundTimes>& times) {
  std::vector<std::string> all;
  for (const SizeChoice& size : choose_by_times(times)) all.push_back(size.chosen);
  return all;
}

Thresholds thresholds(const std::vector<std::pair<uint64_t, std::string>>& chosen) {
  std::vector<SizeChoice> sizes;
  for (const auto& [bytes, choice] : chosen) sizes.push_back({bytes, 1, 0, "", 1, choice});
  return thresholds_of(sizes);
}

}  // namespace

TEST_CASE("NCCL's own choice stands where none is faster by more than the rounds differ") {
  CHECK(chosen({{nccl_chooses, {{8, {10, 11, 12}}}}, {"ring/ll", {{8, {8, 8, 8}}}}}) == std::vector<std::string>{"ring/ll"});
  CHECK(chosen({{nccl_chooses, {{8, {10, 11, 12}}}}, {"ring/ll", {{8, {9, 9, 9}}}}}) == std::vector{nccl_chooses});  // by as much
  CHECK(chosen({{nccl_chooses, {{8, {11, 11, 11}}}}, {"ring/ll", {{8, {8, 8, 12}}}}}) ==
        std::vector{nccl_chooses});  // its own rounds differ
  CHECK(chosen({{nccl_chooses, {{8, {11, 11, 11}}}}, {"ring/ll", {{8, {12, 12, 12}}}}}) == std::vector{nccl_chooses});
  CHECK(chosen({{nccl_chooses, {{8, {10, 10, 10, 50}}}}, {"ring/ll", {{8, {2, 2, 2, 2}}}}}) == std::vector{nccl_chooses});
}

TEST_CASE("the least median is chosen of those that are faster, by size, and sizes that one lacks are others'") {
  const auto sizes = choose_by_times({{nccl_chooses, {{8, {10, 12}}, {16, {20, 21}}, {32, {40, 40}}}},
                                      {"tree/ll", {{8, {5, 6}}, {16, {15, 15}}, {32, {39, 39.5}}}},
                                      {"ring/ll", {{8, {7, 7}}, {16, {12, 12}}, {32, {41, 41}}}},
                                      {"nvls/simple", {{16, {1}}, {32, {30, 31}}, {64, {1, 1}}}}});
  REQUIRE(sizes.size() == 3);
  CHECK(sizes[0].bytes == 8);
  CHECK(sizes[0].own_us == 11);
  CHECK(sizes[0].own_spread == 2);
  CHECK(sizes[0].best == "tree/ll");
  CHECK(sizes[0].best_us == 5.5);
  CHECK(sizes[0].chosen == "tree/ll");
  CHECK(sizes[1].chosen == "ring/ll");  // nvls ran in one round only
  CHECK(sizes[2].chosen == "nvls/simple");
}

TEST_CASE("a choice stays from one size to the next where another is no faster than the rounds differ") {
  CHECK(chosen({{nccl_chooses, {{8, {20, 20}}, {16, {20, 20}}, {32, {20, 20}}}},
                {"tree/ll", {{8, {5, 6}}, {16, {9, 10}}, {32, {9, 10}}}},
                {"ring/ll", {{8, {7, 7}}, {16, {9, 9}}, {32, {8, 8}}}}}) == std::vector<std::string>{"tree/ll", "tree/ll", "ring/ll"});
}

TEST_CASE("gyre is chosen where it beats NCCL's own choice and the best that was forced by more than the rounds differ") {
  const std::string gyre("gyre");
  const auto with = [&](const std::vector<double>& own, const std::vector<double>& forced, const std::vector<double>& gyres) {
    std::map<std::string, RoundTimes> times{{nccl_chooses, {{8, own}}}, {gyre, {{8, gyres}}}};
    if (!forced.empty()) times["ring/ll"] = {{8, forced}};
    return choose_by_times(times).front();
  };
  CHECK_FALSE(with({20, 20}, {10, 10}, {9, 10}).gyre_beside);  // by less than its rounds differ
  CHECK_FALSE(with({20, 20}, {9, 11}, {8.5, 8.5}).gyre_beside);
  CHECK_FALSE(with({20, 20}, {30, 30}, {21, 21}).gyre_beside);
  CHECK_FALSE(with({20, 24}, {30, 30}, {19, 19}).gyre_beside);
  CHECK(with({20, 20}, {}, {8, 9}).gyre_beside);
  const SizeChoice size = with({20, 20}, {10, 10}, {8, 9});
  CHECK(size.gyre_beside);
  CHECK(size.best == "ring/ll");
  CHECK(size.best_us == 10);
  CHECK(size.gyre_us == 8.5);
  // It does not stay where it was best before.
  const auto sizes = choose_by_times({{nccl_chooses, {{8, {20, 20}}, {16, {20, 20}}}},
                                      {"ring/ll", {{8, {10, 10}}, {16, {10, 10}}}},
                                      {gyre, {{8, {8, 9}}, {16, {9, 10}}}}});
  CHECK(sizes[0].gyre_beside);
  CHECK_FALSE(sizes[1].gyre_beside);
}

TEST_CASE("where gyre is chosen NCCL's choice is what it would be without it") {
  const std::map<std::string, RoundTimes> without{{nccl_chooses, {{8, {20, 20}}, {16, {20, 20}}, {32, {20, 20}}, {64, {20, 24}}}},
                                                  {"tree/ll", {{8, {5, 6}}, {16, {9, 10}}, {32, {9, 10}}, {64, {19, 19}}}},
                                                  {"ring/ll", {{8, {7, 7}}, {16, {9, 9}}, {32, {8, 8}}, {64, {30, 30}}}}};
  auto with = without;
  with["gyre"] = {{8, {1, 1}}, {16, {1, 1}}, {32, {1, 1}}, {64, {1, 1}}};
  CHECK(chosen(without) == std::vector<std::string>{"tree/ll", "tree/ll", "ring/ll", nccl_chooses});
  CHECK(chosen(with) == chosen(without));
  CHECK(std::ranges::all_of(choose_by_times(with), &SizeChoice::gyre_beside));
}

TEST_CASE("choices change in the geometric middle of two sizes, and hold for sizes that were measured") {
  CHECK(thresholds({{8, "ring/ll"}, {16, "ring/ll"}, {32, "tree/ll"}, {64, nccl_chooses}, {128, "ring/simple"}}) ==
        Thresholds{{0, "ring/ll"}, {23, "tree/ll"}, {46, nccl_chooses}, {91, "ring/simple"}, {129, nccl_chooses}});
  CHECK(thresholds({{2, "ring/ll"}, {8, "tree/ll"}}) == Thresholds{{0, "ring/ll"}, {4, "tree/ll"}, {9, nccl_chooses}});
  CHECK(thresholds({{8, "ring/ll"}, {9, "tree/ll"}}) == Thresholds{{0, "ring/ll"}, {9, "tree/ll"}, {10, nccl_chooses}});
  CHECK(thresholds({{uint64_t{1} << 40, nccl_chooses}, {uint64_t{1} << 42, "ring/simple"}}) ==
        Thresholds{{0, nccl_chooses}, {uint64_t{1} << 41, "ring/simple"}, {(uint64_t{1} << 42) + 1, nccl_chooses}});
  std::vector<SizeChoice> beside{
      {8, 1, 0, "", 1, "ring/ll", 1, true}, {32, 1, 0, "", 1, "ring/ll"}, {128, 1, 0, "", 1, "ring/ll", 1, true}};
  CHECK(thresholds_of(beside) == Thresholds{{0, "ring/ll", true}, {16, "ring/ll"}, {64, "ring/ll", true}, {129, nccl_chooses}});
  beside[1].gyre_beside = true;
  CHECK(thresholds_of(beside) == Thresholds{{0, "ring/ll", true}, {129, nccl_chooses}});
  CHECK(thresholds({{1024, "ring/ll"}}) == Thresholds{{0, nccl_chooses}, {1024, "ring/ll"}, {1025, nccl_chooses}});
  CHECK(thresholds({{8, nccl_chooses}, {16, nccl_chooses}}) == Thresholds{{0, nccl_chooses}});
}
