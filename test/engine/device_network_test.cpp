// Collectives on a device whose messages a network takes from GPUs' memory and brings there.
#include <cstdlib>

#include "test/catch.h"
#include "test/engine/device_ranks.h"
#include "test/engine/gpu_network.h"
#include "test/kept_log.h"

using namespace gyre;
using namespace gyre::engine;
using test::DeviceRank;
using test::GpuNetwork;

namespace {

/// How far a network may be from GPUs whose memory it reaches; null: nobody says.
class GdrLevel {
 public:
  explicit GdrLevel(const char* level = "SYS") {
    if (level != nullptr) ::setenv("NCCL_NET_GDR_LEVEL", level, 1);
  }
  GdrLevel(const GdrLevel&) = delete;
  GdrLevel& operator=(const GdrLevel&) = delete;
  ~GdrLevel() { ::unsetenv("NCCL_NET_GDR_LEVEL"); }
};

/// Of ranks that reach nothing of each other by themselves.
std::string run_by_network(int ranks, const test::DeviceBody& body, const std::string& algorithm = "ring") {
  return test::run_device_ranks(
      ranks, {"GYRE_TRANSPORT=tcp", "GYRE_SLOT_BYTES=4K", "GYRE_SLOTS=4", "GYRE_DEADLINE=20", "GYRE_ALGORITHM=" + algorithm}, body,
      test::Reach::none);
}

constexpr size_t network_count = 30'000;
const Call network_sum{Collective::all_reduce, network_count, DataType::int32, ReduceOp::sum, 0};

std::string sum_by_network(DeviceRank& on, HandOff hand_off = HandOff::gates) {
  test::DeviceArray<int> values(on, std::vector<int>(network_count, on.rank() + 1));
  if (Status given = on.device.enqueue(network_sum, values.data(), values.data(), on.stream.handle(), hand_off); !given)
    return given.error().what;
  const bool right = values.all(on.size() * (on.size() + 1) / 2);
  if (Status status = on.device.status(); !status) return status.error().what;
  return right ? "" : "a wrong sum";
}

std::string every_collective_by_network(DeviceRank& on, HandOff hand_off) {
  for (const Collective collective : all_collectives()) {
    for (const size_t elements : {size_t{1}, size_t{5001}}) {
      const Call call{collective, elements, DataType::float32, ReduceOp::sum, 0};
      if (std::string wrong = test::same_bits(on, call, hand_off, false); !wrong.empty()) return wrong;
    }
  }
  return on.device.by_host() ? "messages go by the host" : "";
}

std::string replayed_by_network(DeviceRank& on) {
  test::DeviceArray<int> values(on, std::vector<int>(network_count, 1));
  if (!on.stream.done()) return "nothing was copied";
  on.stream.begin_capture();
  const Status given = on.device.enqueue(network_sum, values.data(), values.data(), on.stream.handle());
  const auto graph = on.stream.end_capture();
  if (!given) return given.error().what;
  for (int i = 0; i < 3; ++i) graph->launch(on.stream);
  return values.all(on.size() * on.size() * on.size()) ? "" : "a wrong sum";
}

}  // namespace

TEST_CASE("collectives by a network that reaches GPUs' memory give the host's bits", "[device]") {
  const GdrLevel level;
  GpuNetwork network;
  HandOff hand_off = HandOff::gates;
  for (const char* algorithm : {"ring", "two_shot", "tree"}) {
    INFO(algorithm);
    CHECK(run_by_network(
              3, [&](DeviceRank& on) { return every_collective_by_network(on, hand_off); }, algorithm) == "");
    hand_off = HandOff::stays;
  }
}

TEST_CASE("nothing passes through memory of the host where the network reaches GPUs' memory", "[device]") {
  const GdrLevel level;
  GpuNetwork network;
  const test::KeptLog log;
  CHECK(run_by_network(3, [](DeviceRank& on) {
          return on.device.by_host() ? "by the host" : sum_by_network(on) + sum_by_network(on, HandOff::stays);
        }) == "");
  CHECK(network.from_gpu > 0);
  CHECK(network.to_gpu == network.from_gpu);
  CHECK(network.by_host == 0);
  CHECK(network.flushes > 0);
  CHECK(log.count("messages over tcp go from and to memory of the GPU") == 3);
}

TEST_CASE("collectives in graphs go by a network that reaches GPUs' memory", "[device][graph]") {
  const GdrLevel level;
  GpuNetwork network;
  CHECK(run_by_network(2, replayed_by_network) == "");
  CHECK(network.to_gpu > 0);
}

// Each end of a connection goes its own way.
TEST_CASE("a rank whose GPU memory the network refuses goes by the host, and the others do not", "[device]") {
  const GdrLevel level;
  GpuNetwork network;
  network.refused = 1;
  const test::KeptLog log;
  CHECK(run_by_network(3, [](DeviceRank& on) { return sum_by_network(on); }) == "");
  CHECK(log.count("messages over tcp go by memory of the host: the test does not want this memory") == 1);
  CHECK(log.count("messages over tcp go from and to memory of the GPU") == 2);
  CHECK(network.to_gpu > 0);
  CHECK(network.by_host > 0);
}

TEST_CASE("a network that moves no GPU memory is given none", "[device]") {
  const GdrLevel level;
  GpuNetwork network;
  network.moves_gpu_memory = false;
  const test::KeptLog log;
  CHECK(run_by_network(2, [](DeviceRank& on) { return on.device.by_host() ? sum_by_network(on) : "not by the host"; }) == "");
  CHECK(log.count("go by memory of the host: this transport moves memory of the host only") == 2);
  CHECK(network.from_gpu == 0);
}

TEST_CASE("networks reach GPUs' memory only where NCCL_NET_GDR_LEVEL allows it at any distance", "[device]") {
  for (const char* level : {static_cast<const char*>(nullptr), "LOC", "PHB", "0", "3", "SYS", "4", "5"}) {
    INFO((level == nullptr ? "unset" : level));
    const bool allowed = level != nullptr && (std::string_view(level) == "SYS" || *level == '4' || *level == '5');
    const GdrLevel set(level);
    GpuNetwork network;
    CHECK(run_by_network(2, [](DeviceRank& on) { return sum_by_network(on); }) == "");
    CHECK((network.from_gpu > 0) == allowed);
    CHECK((network.by_host > 0) == !allowed);
  }
}

// So that the tests above would find an engine that lets kernels go before the flush.
// By default messages are longer than the transport's.
TEST_CASE("long messages by a network that reaches GPUs' memory come in parts", "[device]") {
  const GdrLevel level;
  GpuNetwork network;
  CHECK(test::run_device_ranks(
            2, {"GYRE_TRANSPORT=tcp", "GYRE_DEADLINE=20", "GYRE_ALGORITHM=ring"},
            [](DeviceRank& on) -> std::string {
              const Call call{Collective::all_reduce, 1'000'001, DataType::int32, ReduceOp::sum, 0};
              if (std::string wrong = test::same_bits(on, call, HandOff::gates, true); !wrong.empty()) return wrong;
              if (on.device.given().kernels > 30) return fmt::format("in {} kernels", on.device.given().kernels);
              return on.device.by_host() ? "messages go by the host" : "";
            },
            test::Reach::none) == "");
}

TEST_CASE("without flushes sums are wrong", "[device]") {
  const GdrLevel level;
  GpuNetwork network;
  network.flush = GpuNetwork::Flush::does_nothing;
  CHECK(test::contains(run_by_network(2, [](DeviceRank& on) { return sum_by_network(on); }), "a wrong sum"));
}

TEST_CASE("a flush that fails is an error on all ranks, and holds their streams", "[device]") {
  const GdrLevel level;
  for (const HandOff hand_off : test::both_hand_offs) {
    GpuNetwork network;
    network.flush = GpuNetwork::Flush::fails;
    CHECK(run_by_network(3, [&](DeviceRank& on) -> std::string {
            test::DeviceArray<int> values(on, std::vector<int>(network_count, 1));
            const Status given = on.device.enqueue(network_sum, values.data(), values.data(), on.stream.handle(), hand_off);
            const std::string said = test::end_of(on, given);
            return test::contains(said, "can't be shown to the GPU: the test wants it to fail") ? "" : said;
          }) == "");
  }
}
