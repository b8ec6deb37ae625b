#include "perf/memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "perf/sweep_buffer.h"
#include "test/catch.h"
#include "test/ranks.h"

using namespace gyre;
using namespace gyre::perf;
using gyre::test::all_configured;
using gyre::test::run_ranks;
using gyre::test::Words;

namespace {

constexpr uint64_t KiB = 1024;
constexpr uint64_t GiB = KiB * KiB * KiB;

// A system with these files, as long as it lives.
class System {
 public:
  System() : root_(fmt::format("/tmp/gyre-memory-test-{}", getpid())) {}
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  ~System() { std::filesystem::remove_all(root_); }

  System& with(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
    return *this;
  }
  std::optional<uint64_t> available() const { return available_memory(root_); }

 private:
  std::string root_;
};

constexpr const char* meminfo = "MemTotal:       65707740 kB\nMemFree:         1000000 kB\nMemAvailable:   40000000 kB\n";

}  // namespace

TEST_CASE("what the kernel takes for available can be had") {
  CHECK(System().available() == std::nullopt);
  CHECK(System().with("/proc/meminfo", meminfo).available() == 40000000 * KiB);
  CHECK(System().with("/proc/meminfo", meminfo).with("/proc/self/cgroup", "0::/\n").available() == 40000000 * KiB);
}

TEST_CASE("what this process' control group has left, or one that it is in, is less") {
  System system;
  system.with("/proc/meminfo", meminfo).with("/proc/self/cgroup", "0::/job/step\n");
  system.with("/sys/fs/cgroup/job/step/memory.max", "max\n").with("/sys/fs/cgroup/job/step/memory.current", "4096\n");
  CHECK(system.available() == 40000000 * KiB);
  system.with("/sys/fs/cgroup/job/memory.max", "1000000\n").with("/sys/fs/cgroup/job/memory.current", "300000\n");
  CHECK(system.available() == 700000);
  system.with("/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 100000\n");  // pages of files, which the kernel gives up
  CHECK(system.available() == 800000);
  system.with("/sys/fs/cgroup/job/memory.current", "2000000\n");
  CHECK(system.available() == 0);
}

TEST_CASE("control groups of version 1 are known, also where this process sees none but its own") {
  System system;
  system.with("/proc/self/cgroup", "5:devices:/\n4:cpu,memory:/host/container\n0::/\n");
  system.with("/sys/fs/cgroup/memory/memory.limit_in_bytes", "500\n").with("/sys/fs/cgroup/memory/memory.usage_in_bytes", "100\n");
  CHECK(system.available() == 400);
}

TEST_CASE("the ranks of a host share its memory, each with two buffers for each communicator") {
  CHECK(largest_that_fits({{"a", 16 * GiB}, {"a", 16 * GiB}}, 1) == 14 * GiB / 4);
  CHECK(largest_that_fits({{"a", 16 * GiB}, {"b", 16 * GiB}}, 1) == 14 * GiB / 2);
  CHECK(largest_that_fits({{"a", 16 * GiB}, {"b", 8 * GiB}, {"a", 16 * GiB}}, 3) == 14 * GiB / 12);
  CHECK(largest_that_fits({{"a", 16 * GiB}, {"a", 8 * GiB}}, 1) == 7 * GiB / 4);
  CHECK(largest_that_fits({{"a", std::nullopt}, {"b", 8 * GiB}}, 1) == 7 * GiB / 2);
  CHECK(largest_that_fits({{"a", std::nullopt}}, 1) == std::nullopt);
}

TEST_CASE("sizes that do not fit the ranks with the least memory are taken from all") {
  const Words words = run_ranks(3, all_configured({"GYRE_TRANSPORT=loopback"}), [](engine::Communicator& communicator) {
    SweepOptions options;
    const auto fit = [&](std::optional<uint64_t> available) {
      const auto note = fit_to_memory(communicator.bootstrap(), {communicator.rank() == 1 ? "small" : "large", available}, options);
      return fmt::format("{}, {}", options.max_bytes, note ? *note : note.error().what);
    };
    const std::string unknown = fit(std::nullopt);
    const std::string all = fit(GiB);
    const std::string some = fit(communicator.rank() == 1 ? 16 * KiB : GiB);
    return fmt::format("{}; {}; {}; {}", unknown, all, some, fit(communicator.rank() == 1 ? 0 : GiB));
  });
  const char* why = "do not fit the memory that is available to all ranks";
  for (const std::string& said : words) {
    CHECK(said == fmt::format("67108864, ; 67108864, ; 7168, maxbytes reduced to 7168: buffers of more than 7168 bytes {}; "
                              "7168, -b 8: buffers of more than 0 bytes {}",
                              why, why));
  }
}

TEST_CASE("a buffer that cannot be had is an error with its size") {
  const auto buffer = SweepBuffer::allocate(uint64_t{1} << 60);
  REQUIRE_FALSE(buffer);
  CHECK(buffer.error().what == fmt::format("cannot allocate a buffer of {} bytes: Cannot allocate memory", uint64_t{1} << 60));
}
