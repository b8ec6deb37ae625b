#include "transport/verbs/options.h"

#include <cstdlib>

#include "test/catch.h"

namespace gyre::test {
namespace {

using transport::verbs::PathOptions;

Result<PathOptions> with(const char* name, const char* value) {
  ::setenv(name, value, 1);
  auto options = PathOptions::from_environment();
  ::unsetenv(name);
  return options;
}

}  // namespace

TEST_CASE("numbers are read as NCCL reads them") {
  CHECK(with("NCCL_IB_TC", "106")->traffic_class == 106);
  CHECK(with("NCCL_IB_TC", "0x6a")->traffic_class == 106);
  CHECK(with("NCCL_IB_TC", "-1")->traffic_class == 0);
  CHECK(with("NCCL_IB_TC", "")->traffic_class == 0);
  CHECK(with("NCCL_IB_TIMEOUT", "22")->timeout == 22);
  CHECK(with("NCCL_IB_TIMEOUT", "0")->timeout == 0);
  CHECK(with("NCCL_IB_PKEY_VALUE", "0x8111")->pkey_value == 0x8111);
  CHECK(!with("NCCL_IB_PKEY_VALUE", "-1")->pkey_value);
  CHECK(with("NCCL_IB_AR_THRESHOLD", "4294967295")->adaptive_threshold == UINT32_MAX);
}

TEST_CASE("a number out of its range is an error that names it") {
  const auto error = [](const char* name, const char* value) { return with(name, value).error().what; };
  CHECK(error("NCCL_IB_TC", "256") == "NCCL_IB_TC=256 is not a number from 0 to 255");
  CHECK(error("NCCL_IB_SL", "four") == "NCCL_IB_SL=four is not a number from 0 to 15");
  CHECK(error("NCCL_IB_SL", "3 ") == "NCCL_IB_SL=3  is not a number from 0 to 15");
  CHECK(error("NCCL_IB_RETRY_CNT", "-2") == "NCCL_IB_RETRY_CNT=-2 is not a number from 0 to 7");
  CHECK(error("NCCL_IB_AR_THRESHOLD", "4294967296") == "NCCL_IB_AR_THRESHOLD=4294967296 is not a number from 0 to 4294967295");
}

TEST_CASE("relaxed ordering: never, demanded, or where it is there") {
  CHECK(!with("NCCL_IB_PCI_RELAXED_ORDERING", "0")->relaxed_ordering);
  CHECK(with("NCCL_IB_PCI_RELAXED_ORDERING", "1")->relaxed_ordering_demanded);
  CHECK(with("NCCL_IB_PCI_RELAXED_ORDERING", "2")->relaxed_ordering);
  CHECK(!with("NCCL_IB_PCI_RELAXED_ORDERING", "2")->relaxed_ordering_demanded);
}

}  // namespace gyre::test
