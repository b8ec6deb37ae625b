// Where messages of collectives on a device lie: on GPUs, where ranks reach each other's, and not written over before they are read.
#include <fmt/format.h>

#include <optional>

#include "engine/device_mapped.h"
#include "engine/device_probe.h"
#include "test/catch.h"
#include "test/engine/device_ranks.h"
#include "transport/posted_fifo.h"

using namespace gyre;
using namespace gyre::engine;
using test::DeviceRank;
using test::run_device_ranks;
using namespace std::chrono_literals;

namespace {

constexpr size_t GiB = size_t{1} << 30;

/// Of a call on this rank; none of its kernels runs.
Result<DeviceSteps> steps_of(Communicator& host, DeviceMemory& memory, const Call& call) {
  const Plan& plan = *GYRE_TRY(host.plan(call));
  const uint32_t credits = transport::PostedFifo::certain_credits(memory.slots());
  const auto turns = GYRE_TRY(schedule::turns(plan.schedule(), host.rank(), credits, plan.slices()));
  auto* const nowhere = reinterpret_cast<std::byte*>(uintptr_t{1} << 40);
  return device_steps(plan, host.rank(), turns, {nowhere, nowhere, 0}, nowhere, memory.staging(plan));
}

/// A GPU whose other ranks are of other processes.
class ApartGpu final : public test::GpuOver {
 public:
  using GpuOver::GpuOver;
  Result<kernels::ReachedMemory> reach(std::string_view handle) override {
    auto theirs = GYRE_TRY(GpuOver::reach(handle));
    theirs.in_process = false;
    return theirs;
  }
};

/// What a stream is given for a call, without running it, where ranks are processes that reach the memory of each other's GPUs, or no other
/// rank's; empty: it waits for flags between kernels, which move so many bytes, if that is known.
std::string by_gates(Communicator& host, const Call& call, std::optional<size_t> moved = {}, bool reached = true) {
  const auto gpu = test::TestDevice::open();
  ApartGpu apart(gpu->gpu());
  test::UnreachableGpu unreachable(gpu->gpu());
  auto memory = DeviceMemory::open(host, reached ? static_cast<kernels::Gpu&>(apart) : unreachable);
  if (!memory) return memory.error().what;
  if (memory->everywhere() != reached || memory->maps()) return "messages do not go where they should";
  const auto queue = DeviceQueue::open(gpu->gpu(), memory->path());
  if (!queue) return queue.error().what;
  const auto made = steps_of(host, *memory, call);
  if (!made) return made.error().what;
  const DeviceSteps& steps = *made;
  if (moved && steps.traffic() != *moved) return fmt::format("{} bytes are moved, not {}", steps.traffic(), *moved);
  if ((*queue)->fitting(steps) == HandOff::gates) return {};
  return fmt::format("{}: {} steps, {} kernels", (*host.plan(call))->text(), steps.steps.size(), steps.kernels.size());
}

/// A GPU that counts what it gives.
class CountingGpu final : public test::GpuOver {
 public:
  /// `reaches`: other ranks' memory.
  explicit CountingGpu(kernels::Gpu& gpu, bool reaches = true) : GpuOver(gpu), reaches_(reaches) {}

  Result<kernels::GpuMemory> allocate(size_t bytes) override { return allocated += bytes, GpuOver::allocate(bytes); }
  Result<kernels::ReachableMemory> allocate_reachable(size_t bytes) override {
    return reachable += bytes, GpuOver::allocate_reachable(bytes);
  }
  Result<kernels::ReachedMemory> reach(std::string_view handle) override {
    return reaches_ ? GpuOver::reach(handle) : Error{Code::cuda, "the test does not want it"};
  }

  size_t allocated = 0, reachable = 0;  ///< bytes

 private:
  bool reaches_;
};

/// Bytes of the GPU's that a call takes which the communicator did not have; an error in words.
std::string taken_by_call(Communicator& first, const Call& call) {
  const auto gpu = test::TestDevice::open();
  CountingGpu counting(gpu->gpu());
  const auto stream = gpu->open_stream();
  auto second = first.split(0, first.rank());
  if (!second) return second.error().what;
  const auto device = DeviceCommunicator::create(*std::move(second), counting);
  if (!device) return device.error().what;
  const size_t before = counting.allocated;
  DeviceRank on{first, **device, *gpu, *stream};
  test::DeviceArray<float> values(on, std::vector<float>(call.count, 1));
  if (Status given = (*device)->enqueue(call, values.data(), values.data(), stream->handle()); !given) return given.error().what;
  if (Status ended = (*device)->finish(); !ended) return ended.error().what;
  return fmt::format("{} bytes", counting.allocated - before);
}

int element(size_t broadcast, size_t i) { return static_cast<int>(i * 100 + broadcast); }

/// Broadcasts of a few and of many messages, at once, to a rank whose stream comes to each late.
std::string broadcast_to_slow(DeviceRank& on, HandOff hand_off) {
  std::vector<test::DeviceArray<int>> all;
  for (size_t b = 0; b < 12; ++b) {
    std::vector<int> given(b % 3 == 0 ? 20'000 : 1'000);
    for (size_t i = 0; i < given.size() && on.rank() == 0; ++i) given[i] = element(b, i);
    all.emplace_back(on, std::move(given));
  }
  if (!on.stream.done()) return "nothing was copied";
  for (auto& array : all) {
    if (on.rank() == 1) on.stream.add([] { std::this_thread::sleep_for(10ms); });
    const Call call{Collective::broadcast, array.size(), DataType::int32, ReduceOp::sum, 0};
    if (Status status = on.device.enqueue(call, array.data(), array.data(), on.stream.handle(), hand_off); !status)
      return status.error().what;
  }
  for (size_t b = 0; b < all.size(); ++b) {
    const std::vector<int> got = all[b].get();
    if (got.empty()) return "the stream does not end";
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] != element(b, i)) return fmt::format("broadcast {}: element {} is {} and not {}", b, i, got[i], element(b, i));
    }
  }
  return {};
}

/// Reaches what was never written, as GPUs do behind an IOMMU that leads elsewhere.
class MisledGpu final : public test::GpuOver {
 public:
  using GpuOver::GpuOver;
  Result<kernels::ReachedMemory> reach(std::string_view handle) override {
    const auto there = GYRE_TRY(GpuOver::reach(handle));
    elsewhere_ = GYRE_TRY(allocate(DeviceProbe::bytes));
    return kernels::ReachedMemory{elsewhere_.get(), there.on_this_gpu};
  }

 private:
  kernels::GpuMemory elsewhere_;
};

/// 1: each rank reaches all others, 0: none, -1: not opened.
std::vector<int> everywhere_of(int ranks, int misled) {
  std::vector<int> all(static_cast<size_t>(ranks), -1);
  CHECK(test::first_wrong(test::run_ranks(ranks, test::all_configured({"GYRE_TRANSPORT=loopback"}), [&](Communicator& host) -> std::string {
          const auto device = test::TestDevice::open();
          MisledGpu wrong(device->gpu());
          const auto memory = DeviceMemory::open(host, host.rank() == misled ? wrong : device->gpu());
          if (!memory) return memory.error().what;
          all[static_cast<size_t>(host.rank())] = memory->everywhere() ? 1 : 0;
          return {};
        })) == "");
  return all;
}

}  // namespace

TEST_CASE("messages stay on GPUs where each reads what another has written, and no rank asks otherwise", "[device]") {
  CHECK(everywhere_of(2, -1) == std::vector{1, 1});
  CHECK(everywhere_of(2, 1) == std::vector{0, 0});
  for (const auto& [level, reached] : {std::pair{"LOC", 0}, {"0", 0}, {"SYS", 1}, {"PIX", 1}}) {
    INFO("NCCL_P2P_LEVEL=" << level);
    REQUIRE(setenv("NCCL_P2P_LEVEL", level, 1) == 0);
    CHECK(everywhere_of(2, -1) == std::vector{reached, reached});
    REQUIRE(unsetenv("NCCL_P2P_LEVEL") == 0);
  }
}

// In place: read once and written once to be sent on, and each message read, but where a rank is the last to add or to get it.
TEST_CASE("a ring's all-reduce of 1 GiB in the memory of GPUs is given to a stream by gates, and moves (6N - 4) / N times that",
          "[device]") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    INFO(ranks << " ranks");
    CHECK(test::first_wrong(test::run_ranks(ranks, test::all_configured({"GYRE_ALGORITHM=ring"}), [&](Communicator& host) {
            const auto n = static_cast<size_t>(ranks);
            const size_t chunk = GiB / sizeof(float) / n >> 16 << 16;  // of whole slices
            return by_gates(host, {Collective::all_reduce, chunk * n, DataType::float32, ReduceOp::sum, 0},
                            n > 1 ? (6 * n - 4) * chunk * sizeof(float) : 0);
          })) == "");
  }
}

// Prices alone would take trees for some of these, of more steps. 2 GiB in memory of GPUs of several ranks need longer messages.
TEST_CASE("what is chosen for large calls in the memory of GPUs is given to a stream by gates", "[device]") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    const size_t most = ranks > 2 ? 2 * GiB : 3 * GiB / 2;
    for (const size_t bytes : {GiB, most}) {
      for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
        INFO(ranks << " ranks, " << bytes << " bytes, " << name(collective));
        const size_t parts = collective == Collective::all_reduce ? 1 : static_cast<size_t>(ranks);
        const Call call{collective, bytes / sizeof(float) / parts, DataType::float32, ReduceOp::sum, 0};
        CHECK(test::first_wrong(
                  test::run_ranks(ranks, test::all_configured({}), [&](Communicator& host) { return by_gates(host, call); })) == "");
      }
    }
  }
}

TEST_CASE("what is chosen for large calls between ranks of a process is mapped", "[device][mapped]") {
  for (const int ranks : {2, 3, 4, 8}) {
    for (const size_t bytes : {GiB, 2 * GiB}) {
      for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
        INFO(ranks << " ranks, " << bytes << " bytes, " << name(collective));
        const size_t parts = collective == Collective::all_reduce ? 1 : static_cast<size_t>(ranks);
        const Call call{collective, bytes / sizeof(float) / parts, DataType::float32, ReduceOp::sum, 0};
        CHECK(test::first_wrong(test::run_ranks(ranks, test::all_configured({}), [&](Communicator& host) -> std::string {
                const auto gpu = test::TestDevice::open();
                const auto memory = DeviceMemory::open(host, gpu->gpu());
                if (!memory || !memory->maps()) return "not mapped";
                const auto plan = host.plan(call);
                if (!plan) return plan.error().what;
                return mapped_form(**plan) != nullptr ? "" : (*plan)->text();
              })) == "");
      }
    }
  }
}

TEST_CASE("a plan that does not fit is given up for one that does, as long as that is worth it", "[device]") {
  const auto chosen = [](const char* fitting, double worth) {
    return test::run_ranks(2, test::all_configured({"GYRE_TRANSPORT=loopback"}), [=](Communicator& host) {
      host.only_by_messages();
      host.prefer_fitting([=](const Plan& plan) { return plan.schedule().family == fitting; }, worth);
      const Call call{Collective::all_reduce, 1 << 20, DataType::float32, ReduceOp::sum, 0};
      const auto plan = host.plan(call);
      return plan ? (*plan)->schedule().family : plan.error().what;
    });
  };
  const std::string best = chosen("none", 1000)[0];
  CHECK(best != "naive");
  CHECK(chosen("naive", 1000) == test::Words(2, "naive"));
  CHECK(chosen("naive", 1.0001) == test::Words(2, best));
}

// Whoever names an algorithm gets it.
TEST_CASE("an algorithm that is named runs in the memory of GPUs also where it takes more operations than a stream", "[device]") {
  CHECK(test::run_ranks(2, test::all_configured({"GYRE_ALGORITHM=double_tree"}), [&](Communicator& host) {
          const std::string wrong = by_gates(host, {Collective::all_reduce, GiB / sizeof(float), DataType::float32, ReduceOp::sum, 0});
          return wrong.substr(0, wrong.find(':'));
        }) == test::Words(2, "all_reduce count=268435456 type=float op=sum algorithm=double_tree channels=2"));
}

// Between hosts, as here by memory of the host, too: the transport takes messages in parts.
TEST_CASE("what is chosen for large calls by memory of the host is given to a stream by gates", "[device]") {
  for (const int ranks : {2, 3, 4, 8}) {
    for (const size_t MiB : {size_t{4}, size_t{32}, size_t{96}}) {
      INFO(ranks << " ranks, " << MiB << " MiB");
      const Call call{Collective::all_reduce, MiB << 18, DataType::float32, ReduceOp::sum, 0};
      CHECK(test::first_wrong(test::run_ranks(ranks, test::all_configured({}),
                                              [&](Communicator& host) { return by_gates(host, call, {}, false); })) == "");
    }
  }
}

TEST_CASE("messages by memory of the host are as long as whoever set their length or what they may take has it", "[device]") {
  const auto length = [](const char* setting) {
    std::vector<std::string> settings{"GYRE_TRANSPORT=loopback"};
    if (setting != nullptr) settings.emplace_back(setting);
    return test::first_wrong(test::run_ranks(2, test::all_configured(settings), [](Communicator& host) {
      const auto gpu = test::TestDevice::open();
      test::UnreachableGpu unreachable(gpu->gpu());
      const auto memory = DeviceMemory::open(host, unreachable);
      return memory ? fmt::format("{} of {}", memory->slots().credits, memory->slots().bytes) : memory.error().what;
    }));
  };
  CHECK(length(nullptr) == "rank 0: 8 of 1048576");
  CHECK(length("GYRE_SLOT_BYTES=16K") == "rank 0: 8 of 16384");
  CHECK(length("GYRE_MEMORY_BYTES=64M") == "rank 0: 8 of 65536");
}

TEST_CASE("collectives with long messages give the host's bits", "[device]") {
  for (const char* transport : {"loopback", "tcp"}) {
    for (const char* algorithm : {"ring", "two_shot"}) {
      for (const test::Reach reach : test::every_reach) {
        INFO(algorithm << " over " << transport << ", reach " << static_cast<int>(reach));
        const auto long_messages = [](DeviceRank& on) -> std::string {
          for (const size_t count : {size_t{3}, size_t{100'001}, size_t{400'000}}) {
            const Call call{Collective::all_reduce, count, DataType::int32, ReduceOp::sum, 0};
            if (std::string wrong = test::same_bits(on, call, HandOff::gates, true); !wrong.empty()) return wrong;
            if (on.device.given().kernels > 30) return fmt::format("{} elements in {} kernels", count, on.device.given().kernels);
          }
          return {};
        };
        CHECK(run_device_ranks(3, {std::string("GYRE_TRANSPORT=") + transport, std::string("GYRE_ALGORITHM=") + algorithm}, long_messages,
                               reach) == "");
      }
    }
  }
}

// Who only sends runs ahead as far as it may, within a collective and over several.
TEST_CASE("no message on a GPU is written over before a slow rank has read it", "[device]") {
  for (const test::Way& way : test::every_way) {
    INFO("hand-off " << static_cast<int>(way.hand_off) << ", reach " << static_cast<int>(way.reach));
    CHECK(run_device_ranks(
              2, {"GYRE_TRANSPORT=loopback", "GYRE_SLOT_BYTES=4K", "GYRE_SLOTS=2"},
              [&](DeviceRank& on) { return broadcast_to_slow(on, way.hand_off); }, way.reach) == "");
  }
}

// Others may have taken the rest by then.
TEST_CASE("a communicator has the GPU memory of its sums before it is called", "[device]") {
  for (const char* algorithm : {"ring", "one_shot"}) {
    INFO(algorithm);
    const Call call{Collective::all_reduce, 100'000, DataType::float32, ReduceOp::avg, 0};
    CHECK(test::run_ranks(3, test::all_configured({"GYRE_TRANSPORT=loopback", std::string("GYRE_ALGORITHM=") + algorithm}),
                          [&](Communicator& host) { return taken_by_call(host, call); }) == test::Words(3, "0 bytes"));
  }
}

TEST_CASE("steps say how many sums they keep", "[device]") {
  const auto sums = [](const char* algorithm, ReduceOp op) {
    return test::run_ranks(4, test::all_configured({"GYRE_TRANSPORT=loopback", std::string("GYRE_ALGORITHM=") + algorithm}),
                           [&](Communicator& host) {
                             const auto gpu = test::TestDevice::open();
                             auto memory = DeviceMemory::open(host, gpu->gpu());
                             if (!memory) return memory.error().what;
                             const auto steps = steps_of(host, *memory, {Collective::all_reduce, 1000, DataType::float32, op, 0});
                             return steps ? std::to_string(steps->sums) : steps.error().what;
                           });
  };
  CHECK(sums("ring", ReduceOp::sum) == test::Words(4, "0"));
  CHECK(sums("ring", ReduceOp::avg) == test::Words(4, "0"));
  CHECK(sums("one_shot", ReduceOp::avg) == test::Words(4, "2"));
}

TEST_CASE("a rank takes GPU memory for others only where one of them reaches it", "[device]") {
  for (const bool reaches : {true, false}) {
    CHECK(test::run_ranks(2, test::all_configured({"GYRE_TRANSPORT=loopback"}), [&](Communicator& host) -> std::string {
            const auto gpu = test::TestDevice::open();
            CountingGpu counting(gpu->gpu(), reaches);
            const auto memory = DeviceMemory::open(host, counting);
            if (!memory) return memory.error().what;
            return counting.reachable > (1U << 21) ? "much" : "little";
          }) == test::Words(2, reaches ? "much" : "little"));
  }
}
