// What a communicator gives its stream, and when.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "kernels/mem.h"
#include "test/becomes.h"
#include "test/catch.h"
#include "test/engine/full_gpu.h"
#include "test/engine/graph_ranks.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using test::DeviceRank;
using test::run_device_ranks;
using namespace std::chrono_literals;

namespace {

const std::vector<std::string> stream_settings{"GYRE_TRANSPORT=loopback", "GYRE_SLOT_BYTES=4K", "GYRE_ALGORITHM=ring"};
constexpr unsigned fourth = 4;

/// Takes a collective's fourth kernel (a probe raises no flags) when the step that it was given first has been done.
class LateStream final : public test::StreamOver {
 public:
  using StreamOver::launch;
  using StreamOver::StreamOver;

  Status raise(uint64_t* flag, uint64_t value) override {
    if (flag_ == nullptr) flag_ = flag, value_ = value;
    return StreamOver::raise(flag, value);
  }
  Status launch(kernels::StepKernel kernel, const kernels::StepArgs& args, unsigned blocks) override {
    const auto until = std::chrono::steady_clock::now() + 10s;
    for (const bool waits = ++launched_ == fourth && flag_ != nullptr; waits && kernels::load_acquire(flag_) < value_;
         std::this_thread::yield()) {
      if (std::chrono::steady_clock::now() > until) return Error{Code::cuda, "the first step stands still"};
    }
    return StreamOver::launch(kernel, args, blocks);
  }

 private:
  unsigned launched_ = 0;
  uint64_t* flag_ = nullptr;
  uint64_t value_ = 0;
};

/// Notes how many blocks the largest kernel has.
class NotedStream final : public test::StreamOver {
 public:
  using StreamOver::launch;
  using StreamOver::StreamOver;
  static inline std::atomic<unsigned> most_blocks{0};

  Status launch(kernels::StepKernel kernel, const kernels::StepArgs& args, unsigned blocks) override {
    for (unsigned most = most_blocks; most < blocks && !most_blocks.compare_exchange_weak(most, blocks);) {
    }
    return StreamOver::launch(kernel, args, blocks);
  }
};

/// What it reaches is another GPU's.
class FarGpu final : public test::GpuOver {
 public:
  using GpuOver::GpuOver;

  Result<kernels::ReachedMemory> reach(std::string_view handle) override {
    return kernels::ReachedMemory{GYRE_TRY(GpuOver::reach(handle)).address, false, false};
  }
};

/// Blocks of the largest kernel of an all-reduce whose messages are worth 48.
unsigned most_blocks_of(DeviceRank& on, kernels::Gpu& below, std::string& wrong) {
  test::GpuWith<NotedStream> gpu(below);
  const auto device = test::second_communicator(on, gpu);
  if (!device) return wrong = device.error().what, 0;
  DeviceRank rank{on.host, **device, on.gpu, on.stream};
  test::DeviceArray<int64_t> data(on, std::vector<int64_t>(size_t{1536} * 1024, 1));
  if (Status given = test::sum(rank, data, on.stream, HandOff::gates); !given) return wrong = given.error().what, 0;
  if (!data.all(2)) wrong = "a wrong sum";
  if (Status ended = rank.device.finish(); !ended) wrong = ended.error().what;
  if (Status met = on.host.bootstrap().barrier(); !met) wrong = met.error().what;
  return NotedStream::most_blocks;
}

}  // namespace

TEST_CASE("a collective moves while it is still being given to the stream", "[device]") {
  for (const bool beside_graphs : {false, true}) {
    INFO((beside_graphs ? "beside graphs" : "without graphs"));
    CHECK(run_device_ranks(2, stream_settings, [&](DeviceRank& on) -> std::string {
            test::GpuWith<LateStream> gpu(on.gpu.gpu());
            const auto late = test::second_communicator(on, gpu);
            if (!late) return late.error().what;
            DeviceRank rank{on.host, **late, on.gpu, on.stream};
            test::DeviceArray<int64_t> data(on, std::vector<int64_t>(8000, 1)), captured(on, std::vector<int64_t>(10, 1));
            test::GraphPointer graph;
            if (beside_graphs) {
              auto made = test::capture(on.stream, [&] { return test::sum(rank, captured); });
              if (!made) return made.error().what;
              graph = *std::move(made);
            }
            if (Status given = test::sum(rank, data); !given) return given.error().what;
            if (rank.device.given().hand_off != HandOff::gates || rank.device.given().kernels <= fourth) return "not what was meant";
            const bool right = data.all(2);
            graph.reset();
            if (Status ended = rank.device.finish(); !ended) return ended.error().what;
            return right ? "" : "a wrong sum";
          }) == "");
  }
}

TEST_CASE("a collective that a stream takes half of is an error on all ranks, and nothing but an abort frees their streams", "[device]") {
  for (const test::Refuses when : {test::Refuses::at_once, test::Refuses::when_done}) {
    INFO((when == test::Refuses::at_once ? "a half that waits for the other rank" : "a half that is done"));
    std::atomic<bool> refused = false;
    CHECK(run_device_ranks(2, stream_settings, [&](DeviceRank& on) -> std::string {
            test::FullGpu full(on.gpu.gpu(), fourth - 1, when);
            const auto device = test::second_communicator(on, on.rank() == 0 ? full : on.gpu.gpu());
            if (!device) return device.error().what;
            DeviceRank rank{on.host, **device, on.gpu, on.stream};
            test::DeviceArray<int64_t> data(on, std::vector<int64_t>(8000, 1));
            const bool waits = on.rank() == 1 && when == test::Refuses::at_once;
            if (waits && !test::becomes([&] { return refused.load(); })) return "nothing is refused";
            const Status given = test::sum(rank, data);
            if (on.rank() == 1) {
              const std::string said = test::end_of(rank, given);
              return test::contains(said, "rank 0") ? "" : said;
            }
            refused = true;
            if (given || !test::contains(given.error().what, "no more kernels")) return given ? "it was taken" : given.error().what;
            const Status later = test::sum(rank, data);
            if (later || !test::contains(later.error().what, "no more kernels")) return "a later call was taken";
            return test::held_until_abort(rank);
          }) == "");
  }
}

TEST_CASE("steps have no more blocks than what messages go by keeps busy", "[device]") {
  struct Case {
    MessagePath path;
    unsigned least, most;
  };
  for (const Case& expected : {Case{MessagePath::one_gpu, 33, ~0U}, Case{MessagePath::gpus, 32, 32}, Case{MessagePath::host, 16, 16}}) {
    INFO("path " << static_cast<int>(expected.path));
    NotedStream::most_blocks = 0;
    CHECK(run_device_ranks(2, {"GYRE_TRANSPORT=loopback", "GYRE_SLOT_BYTES=2M", "GYRE_ALGORITHM=ring"}, [&](DeviceRank& on) -> std::string {
            FarGpu far(on.gpu.gpu());
            test::UnreachableGpu unreachable(on.gpu.gpu());
            const std::array<kernels::Gpu*, 3> below{&on.gpu.gpu(), &far, &unreachable};
            std::string wrong;
            const unsigned blocks = most_blocks_of(on, *below.at(static_cast<size_t>(expected.path)), wrong);
            if (!wrong.empty()) return wrong;
            return blocks >= expected.least && blocks <= expected.most ? "" : fmt::format("{} blocks", blocks);
          }) == "");
  }
}

TEST_CASE("a collective of 256 operations goes by gates, and of one more by a kernel that stays", "[device]") {
  const auto device = test::TestDevice::open();
  const auto queue = DeviceQueue::open(device->gpu(), MessagePath::host);
  REQUIRE(queue);
  DeviceSteps steps;
  steps.steps.resize(84);    // each waits and says that it has ended, beside what leads in and out
  steps.kernels.resize(86);  // one has nothing to do
  for (size_t k = 1; k < steps.kernels.size(); ++k) steps.kernels[k].args.count = 1;
  const bool gates = device->gpu().streams_wait();
  CHECK((*queue)->fitting(steps) == (gates ? HandOff::gates : HandOff::stays));
  steps.kernels[0].args.count = 1;
  CHECK((*queue)->fitting(steps) == HandOff::stays);
}

TEST_CASE("a stream goes on while others wait behind closed gates, where the GPU says so", "[device][gate]") {
  const auto device = test::TestDevice::open();
  kernels::Gpu& gpu = device->gpu();
  const char* const connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  if (connections != nullptr && connections == std::string_view("1")) {
    CHECK_FALSE(gpu.streams_wait());
    return;
  }
  REQUIRE(gpu.streams_wait());
  const auto memory = gpu.allocate_pinned(4096);
  REQUIRE(memory);
  auto* const gate = reinterpret_cast<uint64_t*>(memory->get());
  std::vector<std::unique_ptr<kernels::Stream>> closed;  // a rank's, and the user's behind it
  std::vector<std::unique_ptr<test::TestStream>> behind;
  for (int rank = 0; rank < std::min(test::TestDevice::most_ranks(), 4) - 1; ++rank) {
    closed.push_back(*gpu.open_stream());
    behind.push_back(device->open_stream());
    REQUIRE(closed.back()->wait(gate, 1));
    REQUIRE(closed.back()->lead(behind.back()->handle()));
  }
  const auto own = device->open_stream();
  const auto stream = gpu.open_stream();
  REQUIRE(stream);
  REQUIRE((*stream)->follow(own->handle()));
  REQUIRE((*stream)->launch(kernels::step_kernel_of(DataType::uint8, ReduceOp::sum, kernels::Shape::one_to_one), kernels::StepArgs{}, 1));
  REQUIRE((*stream)->lead(own->handle()));
  CHECK(own->done());
  CHECK_FALSE(behind.front()->done_within(0s));
  kernels::store_release(gate, 1);
  for (const auto& stream_behind : behind) CHECK(stream_behind->done());
}

// As a program with PyTorch's pool of streams has it, of which some must share a hardware queue with the gate.
TEST_CASE("a closed gate holds few of a program's 40 streams, the legacy one and a thread's own", "[device][gate]") {
  const auto device = test::TestDevice::open();
  kernels::Gpu& gpu = device->gpu();
  const char* const said = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const size_t connections = said != nullptr ? std::strtoul(said, nullptr, 10) : 8;
  if (connections <= 1) return;
  const auto memory = gpu.allocate_pinned(sizeof(uint64_t));
  REQUIRE(memory);
  auto* const gate = reinterpret_cast<uint64_t*>(memory->get());
  std::vector<std::unique_ptr<test::TestStream>> streams;
  while (streams.size() < 40) streams.push_back(device->open_stream());
  streams.push_back(device->stream_of(1));
  streams.push_back(device->stream_of(2));
  const auto closed = gpu.open_stream();
  REQUIRE(closed);
  REQUIRE((*closed)->wait(gate, 1));
  for (const auto& stream : streams) stream->launch(kernels::step_kernel_of(DataType::uint8, ReduceOp::sum, kernels::Shape::one_to_one));
  const auto held = std::count_if(streams.begin(), streams.end(), [](const auto& stream) { return !stream->done_within(200ms); });
  kernels::store_release(gate, 1);
  CHECK(static_cast<size_t>(held) <= streams.size() / connections + 1);
  for (const auto& stream : streams) CHECK(stream->done());
}
