#include "perf/nccl_tests_output.h"

#include <fmt/format.h>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;

namespace {

using Times = std::map<uint64_t, double>;

constexpr const char* header =
    "# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807\n"
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 32 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0\n"
    "#\n# Using devices\n"
    "#  Rank  0 Group  0 Pid 204199 on  node1 device  0 [0009:01:00] NVIDIA GH200 120GB\n"
    "#  Rank  1 Group  0 Pid 204200 on  node2 device  0 [0009:01:00] NVIDIA GH200 120GB\n"
    "#\n"
    "#                                                              out-of-place                       in-place          \n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       \n";
constexpr const char* footer = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.5\n#\n";

Times times_of(const std::string& output) {
  const auto times = nccl_tests_times(output);
  INFO((times ? "" : times.error().what));
  REQUIRE(times);
  return *times;
}
std::string times_error(const std::string& output) {
  const auto times = nccl_tests_times(output);
  return times ? "" : times.error().what;
}

}  // namespace

TEST_CASE("nccl-tests' table is read: the mean of both ways, and of all rows of a size") {
  const std::string rows =
      "           8             2     float     sum      -1    10.00    0.00    0.00      0    12.00    0.00    0.00      0\n"
      "host1:17:17 [0] NCCL WARN something\n"
      "          16             4     float     sum      -1    13.5    0.00    0.00    N/A    1.4e+03    0.00    0.00    N/A\r\n"
      "           8             4      half     sum      -1    20.00    0.00    0.00      0    22.00    0.00    0.00      0\n"
      "           0             0     float     sum      -1     0.23    0.00    0.00      0     0.23    0.00    0.00      0\n"
      "          32             8     float     sum      -1    15.00    0.00    0.00      0      N/A     N/A     N/A    N/A\n";
  CHECK(times_of(header + rows + footer) == Times{{8, 16}, {16, 706.75}, {32, 15}});
}

TEST_CASE("the columns of other versions of nccl-tests, and gyre-perf's, are found by their names") {
  CHECK(times_of("#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error\n"
                 "          32             4   float    10.00    0.00    0.00  0e+00     20.0    0.00    0.00  4e-07\n") ==
        Times{{32, 15}});
  CHECK(times_of("#         size        count      type  redop  root       time   algbw   busbw #wrong      time   algbw   busbw #wrong  "
                 "predicted  error  algorithm\n"
                 "            32            8     float    sum    -1       2.00    0.15    0.15      0      4.00    0.14    0.14      0  "
                 "     0.21    -1%  one_shot\n") == Times{{32, 3}});
}

TEST_CASE("wrong results, and what is no table, are errors that say what was seen") {
  const std::string start = header;
  CHECK(times_error(start + "  8  2  float  sum  -1  10.00  0.00  0.00  0  12.00  0.00  0.00  3\n") ==
        "wrong results: #wrong of 8 bytes is 3");
  CHECK(times_error(start + "  8  2  float  sum  -1  10.00  0.00  0.00  1e+06  12.00  0.00  0.00  0\n") ==
        "wrong results: #wrong of 8 bytes is 1e+06");
  CHECK(times_error(start + "  8  2  float  sum  -1  10.00  0.00  0.00  0  12.00  0.00  0.00  0\n# Out of bounds values : 3 FAILED\n") ==
        "wrong results: 3 values out of bounds");
  CHECK(times_error(start + "  8  2  float  sum  -1  10.00  0.00  0.00\n") == "its row of 8 bytes has '' as #wrong");
  CHECK(times_error(start + "  8  2  float  sum  -1  ten  0.00  0.00  0\n") == "its row of 8 bytes has 'ten' as time");
  CHECK(times_error(start + "  8  2  float  sum  -1  0.00  0.00  0.00  0\n") == "its row of 8 bytes has '0.00' as time");
  for (const char* time : {"inf", "nan", "-1", "1e308", "1e309"})
    CHECK(times_error(start + "  8  2  float  sum  -1  " + time + "  0.00  0.00  0\n") ==
          fmt::format("its row of 8 bytes has '{}' as time", time));
  const std::string none = "it printed no table of nccl-tests': a line '# size count type ...' and rows under it";
  CHECK(times_error(start + footer) == none);
  CHECK(times_error("") == none);
  CHECK(times_error("  8  2  float  sum  -1  10.00  0.00  0.00  0  12.00  0.00  0.00  0\n") == none);
}

TEST_CASE("lines that begin with a number and are no rows are passed over") {
  const std::string around =
      "16 tasks were started on two nodes\n"
      "2025 01 02 03 04 05 06 07 0 08 09 10 0\n"
      "2 16 tasks sum -1 ten 0 0 0\n"
      "7 8 float\n"
      "-8 2 float sum -1 ten 0 0 0\n";
  const std::string all = header + around + "  8  2  float  sum  -1  10.00  0.00  0.00  0  12.00  0.00  0.00  0\n" + around + footer;
  CHECK(times_of(all) == Times{{8, 11}});
  for (const char* type : {"int8", "uint64", "half", "bfloat16", "f8e4m3", "double", "char", "fp8_e5m2", "none"})
    CHECK(times_of(fmt::format("{}  8  2  {}  none  -1  10.00  0.00  0.00  0  12.00  0.00  0.00  0\n", header, type)) == Times{{8, 11}});
}

TEST_CASE("a size that no memory has is an error") {
  const auto error_of = [](const char* size) {
    return times_error(fmt::format("{}  {}  2  float  sum  -1  10.00  0.00  0.00  0  12.00  0.00  0.00  0\n", header, size));
  };
  CHECK(error_of("4611686018427387904").empty());
  for (const char* size : {"4611686018427387905", "18446744073709551615", "18446744073709551616", "99999999999999999999"})
    CHECK(error_of(size) == fmt::format("its row of {} bytes is of more than can be", size));
}

TEST_CASE("the ranks of nccl-tests are counted by their numbers, and its first device is named") {
  const NcclTestsRanks ranks = nccl_tests_ranks(header);
  CHECK(ranks.count == 2);
  CHECK(ranks.device == "NVIDIA GH200 120GB");
  CHECK(ranks.on_host == std::map<std::string, int>{{"node1", 1}, {"node2", 1}});
  const NcclTestsRanks alone =  // two that do not know of each other, of a version with another line
      nccl_tests_ranks(
          "#   Rank  0 Pid  123 on host device  0 [0x07] Tesla V100\n#   Rank  0 Pid  124 on host device  0 [0x07] Tesla V100\n");
  CHECK(alone.count == 1);
  CHECK(alone.device == "Tesla V100");
  CHECK(alone.on_host == std::map<std::string, int>{{"host", 2}});
  CHECK(nccl_tests_ranks("# Rank  0 Pid  1 on host device  0 [0x07] Tesla V100\r\n").device == "Tesla V100");
  CHECK(nccl_tests_ranks("# Rank  0 Pid  1 on host device  0 [0x07] \x1b[1m\xff\n").device == "?[1m?");
  CHECK(nccl_tests_ranks("# nThread 1\n# Rank\n").count == 0);
  CHECK(nccl_tests_ranks("# Rank 1 Pid 1 on\n").on_host.empty());
}
