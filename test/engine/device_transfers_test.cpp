// Sends and receives that are given to a stream: who has the communicator meanwhile, and what is too much. What they move is tested by
// NCCL's interface (test/plugin/nccl_transfers_test.cpp).
#include "engine/device_transfers.h"

#include <future>
#include <tuple>

#include "test/becomes.h"
#include "test/catch.h"
#include "test/engine/device_ranks.h"
#include "test/engine/full_gpu.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using test::DeviceRank;
using namespace std::chrono_literals;

namespace {

constexpr auto receive = Transfer::Kind::receive;

/// It has no stream, or no pinned memory longer than that, while a test does not want it.
class TightGpu final : public test::GpuOver {
 public:
  using GpuOver::GpuOver;
  Result<std::unique_ptr<kernels::Stream>> open_stream() override {
    if (!streams) return Error{Code::cuda, "the test wants none"};
    return GpuOver::open_stream();
  }
  Result<kernels::GpuMemory> allocate_pinned(size_t bytes) override {
    asked = std::max(asked, bytes);
    if (bytes > longest) return Error{Code::cuda, "the test wants it shorter"};
    return GpuOver::allocate_pinned(bytes);
  }

  bool streams = true;
  size_t longest = SIZE_MAX, asked = 0;
};

bool has_room(DeviceTransfers& transfers, size_t bytes) {
  const Transfer one{receive, 0, nullptr, bytes, DataType::uint8};
  return transfers.make_room({&one, 1});
}

}  // namespace

TEST_CASE("a communicator is its carrier's until it has received, also where the stream was let go", "[device]") {
  std::promise<void> let_go;
  CHECK(test::run_device_ranks(2, {"GYRE_TRANSPORT=loopback"}, [&](DeviceRank& on) -> std::string {
          int word = 7;
          if (on.rank() == 1) {
            let_go.get_future().wait();
            const Transfer send{Transfer::Kind::send, 0, &word, 1, DataType::int32};
            const Status sent = on.host.exchange({&send, 1});
            return sent ? "" : sent.error().what;
          }
          test::DeviceArray<int> data(on, {0});
          DeviceTransfers transfers(on.gpu.gpu());
          const Transfer from{receive, 1, data.data(), 1, DataType::int32};
          const bool room = transfers.make_room({&from, 1});
          const Status given = transfers.give(on.host, {&from, 1}, on.stream.handle());
          const bool held = !on.stream.done_within(50ms);
          transfers.let_go();
          const bool passed = on.stream.done_within(20s);
          const bool free = transfers.carried() || transfers.idle();
          let_go.set_value();
          if (!room || !given) return "it can't be given";
          if (!held || !passed) return held ? "the stream was not let go" : "the stream was not held";
          if (free) return "the communicator is said to be free while it receives";
          return test::becomes([&] { return transfers.carried() && transfers.idle(); }) ? "" : "it never ends";
        }) == "");
}

TEST_CASE("a stream that takes half of a group is held until it is let go, also where all has come", "[device]") {
  for (const test::Refuses when : {test::Refuses::at_once, test::Refuses::when_done}) {
    INFO((when == test::Refuses::at_once ? "a half that waits" : "a half that is done"));
    CHECK(test::run_device_ranks(2, {"GYRE_TRANSPORT=loopback"}, [&](DeviceRank& on) -> std::string {
            int word = 7;
            if (on.rank() == 1) {
              const Transfer send{Transfer::Kind::send, 0, &word, 1, DataType::int32};
              std::ignore = on.host.exchange({&send, 1});  // it may hear of the other's error
              return {};
            }
            test::DeviceArray<int> data(on, {0});
            test::FullGpu full(on.gpu.gpu(), 0, when);
            DeviceTransfers transfers(full);
            const Transfer from{receive, 1, data.data(), 1, DataType::int32};
            if (!transfers.make_room({&from, 1})) return "there is no room";
            const Status given = transfers.give(on.host, {&from, 1}, on.stream.handle());
            if (given || !test::contains(given.error().what, "no more kernels")) return given ? "it was taken" : given.error().what;
            const bool held = !on.stream.done_within(50ms);
            transfers.let_go();
            if (!on.stream.done()) return "the stream was not let go";
            return held ? "" : "the stream was not held";
          }) == "");
  }
}

TEST_CASE("what is received is there, and the communicator free, once the stream has passed it", "[device]") {
  CHECK(test::run_device_ranks(2, {"GYRE_TRANSPORT=loopback"}, [&](DeviceRank& on) -> std::string {
          test::DeviceArray<int> data(on, std::vector<int>(5000, on.rank() == 0 ? 7 : 0));
          test::WatchedGpu watched(on.gpu.gpu());
          DeviceTransfers transfers(watched);
          const Transfer one{on.rank() == 0 ? Transfer::Kind::send : receive, 1 - on.rank(), data.data(), data.size(), DataType::int32};
          if (!transfers.make_room({&one, 1})) return "there is no room";
          if (const Status given = transfers.give(on.host, {&one, 1}, on.stream.handle()); !given) return given.error().what;
          if (!data.all(7)) return "wrong data";
          if (!test::becomes([&] { return transfers.idle(); }) || !transfers.carried()) return "it never ends";
          return watched.strangers() == 0 ? "" : "a call into CUDA by a thread that must make none";
        }) == "");
}

TEST_CASE("what has no room on a stream is refused before anything is given, and what has room later is not", "[device]") {
  const auto device = test::TestDevice::open();
  TightGpu gpu(device->gpu());
  DeviceTransfers transfers(gpu);
  gpu.longest = 0;
  CHECK_FALSE(has_room(transfers, 1));
  gpu.longest = size_t{1} << 20;
  gpu.streams = false;
  CHECK_FALSE(has_room(transfers, 1));
  gpu.streams = true;
  CHECK(has_room(transfers, 1));
  CHECK_FALSE(has_room(transfers, gpu.longest + 1));
  CHECK(has_room(transfers, gpu.longest));
  const size_t asked = gpu.asked;
  gpu.longest = SIZE_MAX;
  CHECK_FALSE(has_room(transfers, DeviceTransfers::most_bytes + 1));
  CHECK(gpu.asked == asked);
  CHECK(transfers.idle());
}
