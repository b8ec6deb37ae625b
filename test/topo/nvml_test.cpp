#include "topo/nvml.h"

#include <cstdlib>

#include "test/catch.h"
#include "test/topo/fake_machine.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

Result<std::vector<DriverGpu>> asked(const char* machine) {
  ::setenv("FAKE_NVML", machine, 1);
  return read_nvml(std::getenv("TEST_FAKE_NVML"));
}

}  // namespace

TEST_CASE("NVML tells numbers, capabilities and the NVLinks that are up") {
  const auto gpus = asked("pair");
  REQUIRE(gpus);
  REQUIRE(gpus->size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    const Gpu& gpu = (*gpus)[i].gpu;
    CHECK(gpu.index == static_cast<int>(i));
    CHECK(gpu.compute_capability == 90);
    REQUIRE(gpu.nvlinks.size() == 1);
    CHECK(gpu.nvlinks[0].links == 4);
    CHECK(gpu.nvlinks[0].target == (*gpus)[1 - i].address);
    CHECK(gpu.nvlinks[0].target_class == 0x030200);
    CHECK(gpu.nvlinks[0].bytes_per_s == 25.781e9);
    CHECK(gpu.c2c_links == 0);
  }
  CHECK(text((*gpus)[0].address) == "0000:1b:00.0");
}

TEST_CASE("a switch that a virtual machine does not show joins GPUs all the same") {
  const auto gpus = asked("switched");
  REQUIRE(gpus);
  REQUIRE(gpus->size() == 4);
  for (const DriverGpu& gpu : *gpus) {
    REQUIRE(gpu.gpu.nvlinks.size() == 1);
    CHECK(gpu.gpu.nvlinks[0].links == 18);
    CHECK_FALSE(gpu.gpu.nvlinks[0].target.has_value());
    CHECK(gpu.gpu.nvlinks[0].bytes_per_s == 20e9);  // of the slowest
  }
}

TEST_CASE("links to the processor of its package are counted where they are up, and what each moves") {
  const auto gpus = asked("superchips");
  REQUIRE(gpus);
  REQUIRE(gpus->size() == 4);
  for (const DriverGpu& gpu : *gpus) {
    CHECK(gpu.gpu.c2c_links == 9);
    CHECK(gpu.gpu.c2c_bytes_per_s == 44.712e9);
    CHECK(gpu.gpu.nvlinks[0].links == 18);
  }
}

TEST_CASE("a GPU that is lost costs nothing of the others") {
  const auto gpus = asked("one lost");
  REQUIRE(gpus);
  REQUIRE(gpus->size() == 3);
  CHECK((*gpus)[1].gpu.index == 2);
  CHECK((*gpus)[1].gpu.nvlinks[0].bytes_per_s == 0);  // nor does a driver that tells no speeds
  CHECK((*gpus)[1].gpu.c2c_links == 0);
}

TEST_CASE("what the driver tells is in the topology") {
  const test::FakeMachine machine;
  machine.numa(0, "3");
  machine.gpu("0000:10/0000:10:01.0/0000:1b:00.0", 0);
  machine.gpu("0000:20/0000:20:01.0/0000:2b:00.0", 0);
  const auto gpus = asked("pair");
  REQUIRE(gpus);
  const auto topology = discover(machine.root(), *gpus);
  REQUIRE(topology);
  const auto parts = topology->all<Gpu>();
  REQUIRE(parts.size() == 2);
  CHECK(nvlinks(*topology, parts[0], parts[1]) == 4);
}

TEST_CASE("no driver: no GPUs; one that does not answer, or is another library: an error") {
  const auto none = read_nvml("libthere-is-no-such-nvml.so.1");
  REQUIRE(none);
  CHECK(none->empty());
  const auto mute = asked("mute");
  REQUIRE_FALSE(mute);
  CHECK(mute.error().what == "nvmlInit_v2: the driver is not in the mood");
  const auto other = read_nvml("libc.so.6");
  REQUIRE_FALSE(other);
  CHECK(other.error().what.find("libc.so.6: not NVML") == 0);
}
