#include "perf/nccl_tests_environment.h"

#include <map>
#include <string>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;

namespace {

transport::Environment environment(std::map<std::string, std::string> variables) {
  return {[variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  }};
}

}  // namespace

TEST_CASE("a bus bandwidth is wanted where NCCL_TESTS_MIN_BW says one") {
  CHECK(*wanted_busbw(environment({})) == std::nullopt);
  CHECK(*wanted_busbw(environment({{"NCCL_TESTS_MIN_BW", ""}})) == std::nullopt);
  CHECK(*wanted_busbw(environment({{"NCCL_TESTS_MIN_BW", "12.5"}})) == 12.5);
  CHECK(*wanted_busbw(environment({{"NCCL_TESTS_MIN_BW", "0"}})) == 0.0);
  for (const char* wrong : {"fast", "10 GB/s", "-1", "nan", "inf", "1e10"}) {
    INFO(wrong);
    const auto read = wanted_busbw(environment({{"NCCL_TESTS_MIN_BW", wrong}}));
    REQUIRE_FALSE(read);
    CHECK(read.error().what == "NCCL_TESTS_MIN_BW=" + std::string(wrong) + ": not a bandwidth in GB/s, such as 10 or 0.5");
  }
}

TEST_CASE("nine tenths of a wanted bandwidth are enough") {
  CHECK(is_enough(9, 10));
  CHECK_FALSE(is_enough(8.99, 10));
  CHECK(is_enough(0, 0));
}
