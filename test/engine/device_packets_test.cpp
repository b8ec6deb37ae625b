// All-reduces of little by packets, which ranks' kernels leave for each other: the same bits as by steps, whoever is late.
#include <fmt/format.h>

#include <atomic>
#include <random>

#include "engine/device_packets.h"
#include "test/catch.h"
#include "test/engine/graph_ranks.h"
#include "test/slow_builds.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::engine;
using test::DeviceRank;
using test::run_device_ranks;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> packet_settings(const std::string& more = "GYRE_ALGORITHM=one_shot") {
  return {"GYRE_TRANSPORT=loopback", "GYRE_SLOT_BYTES=64K", more};
}

std::string went_by(DeviceRank& on, HandOff wanted) {
  return on.device.given().hand_off == wanted ? "" : fmt::format("hand-off {}", static_cast<int>(on.device.given().hand_off));
}

/// The first that could go by packets, and so all that follow.
std::string first_small_call(DeviceRank& on) {
  test::DeviceArray<int64_t> data(on, std::vector<int64_t>(1, 1));
  if (const Status given = test::sum(on, data); !given) return given.error().what;
  return data.all(on.size()) ? went_by(on, HandOff::gates) : "a wrong sum";
}

std::string same_bits_by_packets(DeviceRank& on, const Call& call, bool in_place) {
  const std::string wrong = test::same_bits(on, call, HandOff::packets, in_place);
  return wrong.empty() ? went_by(on, HandOff::packets) : wrong;
}

std::string every_operation_by_packets(DeviceRank& on) {
  if (std::string wrong = first_small_call(on); !wrong.empty()) return wrong;
  for (const DataType type : all_data_types()) {
    for (size_t op = 0; op < every_reduce_op_count; ++op) {
      for (const size_t count : {size_t{1}, size_t{533}}) {
        Call call{Collective::all_reduce, count, type, static_cast<ReduceOp>(op), 0};
        if (call.op == ReduceOp::premul_sum) call.scalar = kernels::avg_scalar_bits(type, 3 + on.rank());
        if (std::string wrong = same_bits_by_packets(on, call, op % 2 == 0); !wrong.empty()) return wrong;
      }
    }
  }
  return {};
}

int64_t part_of_call(int call, Rank rank) { return call * 1000 + rank; }

/// Many calls one behind another, on two streams, to which ranks come late at times of their own.
std::string calls_at_odd_times(DeviceRank& on, int calls) {
  if (std::string wrong = first_small_call(on); !wrong.empty()) return wrong;
  const auto other = on.gpu.open_stream();
  std::mt19937 random(static_cast<unsigned>(on.rank()));
  std::vector<test::DeviceArray<int64_t>> all;
  for (int call = 0; call < calls; ++call)
    all.emplace_back(on, std::vector<int64_t>(size_t{1} << call % 12, part_of_call(call, on.rank())));
  if (!on.stream.done()) return "nothing was copied";
  for (int call = 0; call < calls; ++call) {
    test::TestStream& stream = call % 5 == 0 ? *other : on.stream;
    if (random() % 4 == 0) stream.add([time = random() % 2000] { std::this_thread::sleep_for(std::chrono::microseconds(time)); });
    if (const Status given = test::sum(on, all[static_cast<size_t>(call)], stream); !given) return given.error().what;
    if (std::string wrong = went_by(on, HandOff::packets); !wrong.empty()) return wrong;
  }
  if (!other->done()) return "a stream does not end";
  for (int call = 0; call < calls; ++call) {
    int64_t sum = 0;
    for (Rank rank = 0; rank < on.size(); ++rank) sum += part_of_call(call, rank);
    if (!all[static_cast<size_t>(call)].all(sum)) return fmt::format("call {}: a wrong sum", call);
  }
  return {};
}

/// Gives so many calls, until it has or another rank lets it go on; how many have been given is told meanwhile.
std::string give_many(DeviceRank& on, uint64_t calls, std::atomic<uint64_t>& given) {
  test::DeviceArray<int64_t> data(on, std::vector<int64_t>(3, on.rank()));
  const Call call{Collective::all_reduce, data.size(), DataType::int64, ReduceOp::max, 0};
  for (uint64_t i = 0; i < calls; ++i, ++given) {
    if (const Status status = on.device.enqueue(call, data.data(), data.data(), on.stream.handle()); !status) return status.error().what;
  }
  return data.all(on.size() - 1) ? "" : "a wrong maximum";
}

/// Rank 0 calls as often as it can, and then rank 1 comes.
std::string runs_ahead(DeviceRank& on, std::atomic<uint64_t>& given) {
  constexpr uint64_t calls = DeviceCommunicator::most_ahead + 20;
  std::atomic<uint64_t> own{0};
  if (on.rank() == 0) return give_many(on, calls, given);
  uint64_t before = 0;
  do {
    before = given;
    std::this_thread::sleep_for(100ms);
  } while (given != before || before == 0);
  if (std::string wrong = give_many(on, calls, own); !wrong.empty()) return wrong;
  return before <= DeviceCommunicator::most_ahead + 1 ? "" : fmt::format("{} calls ahead", before);
}

schedule::Schedule proven_all_reduce(const char* family, int ranks, uint32_t channels = 1) {
  return (*prove(family, {Collective::all_reduce, ranks, channels, 0, {}}, {4, 4096}))->schedule;
}

}  // namespace

TEST_CASE("an exchange of packets stands for schedules in which each rank sends all its part and reduces all in one order", "[packets]") {
  CHECK(exchange_order(proven_all_reduce("one_shot", 4)) == std::vector<Rank>{0, 1, 2, 3});
  const std::vector<Rank> order{2, 0, 1};
  const auto renamed = prove("one_shot", {Collective::all_reduce, 3, 1, 0, {}}, {4, 4096}, {order});
  REQUIRE(renamed);
  CHECK(exchange_order((*renamed)->schedule) == order);
  CHECK(exchange_order(proven_all_reduce("one_shot", 3, 2)).empty());
  CHECK(exchange_order(proven_all_reduce("one_shot", 1)).empty());
  for (const auto& family : topo::families()) {
    if (family.name == std::string_view("one_shot") || !topo::refusal(family, {Collective::all_reduce, 4, 1, 0, {}}).empty()) continue;
    if (topo::lacks_nodes(family, {Collective::all_reduce, 4, 1, 0, {}})) continue;
    INFO(family.name);
    CHECK(exchange_order(proven_all_reduce(std::string(family.name).c_str(), 4)).empty());
  }
  schedule::Schedule other = proven_all_reduce("one_shot", 3);
  other.peer_table[other.programs[1].steps[1].from.first] = 2;  // whose ranks reduce in different orders
  other.peer_table[other.programs[1].steps[1].from.first + 1] = 0;
  CHECK(exchange_order(other).empty());
}

TEST_CASE("every type and operation gives the host's bits by packets", "[device][packets]") {
  for (const int ranks : test::sampled(std::array{3, 2, 4})) {
    INFO(ranks << " ranks");
    CHECK(run_device_ranks(ranks, packet_settings(), every_operation_by_packets) == "");
  }
}

TEST_CASE("packets carry up to 64 KiB between up to 8 ranks, and nothing else", "[device][packets]") {
  CHECK(run_device_ranks(8, packet_settings(), [](DeviceRank& on) -> std::string {
          if (std::string wrong = first_small_call(on); !wrong.empty()) return wrong;
          const Call most{Collective::all_reduce, 32768, DataType::float16, ReduceOp::sum, 0};
          if (std::string wrong = same_bits_by_packets(on, most, true); !wrong.empty()) return wrong;
          for (const Call& call : {Call{Collective::all_reduce, 32769, DataType::float16, ReduceOp::sum, 0},
                                   Call{Collective::all_reduce, 0, DataType::float16, ReduceOp::sum, 0},
                                   Call{Collective::all_gather, 8, DataType::float16, ReduceOp::sum, 0}}) {
            if (std::string wrong = test::same_bits(on, call, HandOff::packets, true); !wrong.empty()) return wrong;
            if (std::string wrong = went_by(on, HandOff::gates); !wrong.empty()) return wrong;
          }
          return {};
        }) == "");
}

TEST_CASE("by packets no rank overtakes another by more than a call, whoever is late", "[device][packets]") {
  for (const int ranks : test::sampled(std::array{3, 2, 4}))
    CHECK(run_device_ranks(ranks, packet_settings(), [](DeviceRank& on) { return calls_at_odd_times(on, 60); }) == "");
}

TEST_CASE("packets are for ranks that reach each other's GPUs, and for one_shot in any order", "[device][packets]") {
  const auto small_by = [](HandOff wanted) {
    return [wanted](DeviceRank& on) -> std::string {
      for (int i = 0; i < 2; ++i) {
        test::DeviceArray<int64_t> data(on, std::vector<int64_t>(100, 1));
        if (const Status given = test::sum(on, data); !given) return given.error().what;
        if (!data.all(on.size())) return "a wrong sum";
      }
      return went_by(on, wanted);
    };
  };
  CHECK(run_device_ranks(3, packet_settings(), small_by(HandOff::packets)) == "");
  CHECK(run_device_ranks(3, packet_settings("GYRE_ALGORITHM=auto"), small_by(HandOff::packets)) == "");  // by its price
  CHECK(run_device_ranks(3, packet_settings(), small_by(HandOff::gates), test::Reach::none) == "");
  CHECK(run_device_ranks(3, packet_settings(), small_by(HandOff::gates), test::Reach::some) == "");
  CHECK(run_device_ranks(3, packet_settings("GYRE_ALGORITHM=two_shot"), small_by(HandOff::mapped)) == "");
  CHECK(run_device_ranks(3, packet_settings("GYRE_NUMERICS=ordered"), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = small_by(HandOff::packets)(on); !wrong.empty()) return wrong;  // integers have the same sums in any order
          const Call call{Collective::all_reduce, 100, DataType::float32, ReduceOp::sum, 0};
          const std::string wrong = test::same_bits(on, call, HandOff::packets, true);
          return wrong.empty() ? went_by(on, HandOff::gates) : wrong;
        }) == "");
}

TEST_CASE("calls by packets, by steps and in a graph follow each other", "[device][packets][graph]") {
  CHECK(run_device_ranks(2, packet_settings(), [](DeviceRank& on) -> std::string {
          if (std::string wrong = first_small_call(on); !wrong.empty()) return wrong;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(300, 1));
          auto graph = test::capture(on.stream, [&] { return test::sum(on, data); });
          if (!graph) return graph.error().what;
          for (int round = 0; round < 3; ++round) {
            for (const auto hand_off : {HandOff::packets, HandOff::stays, HandOff::packets, HandOff::gates}) {
              if (const Status given = test::sum(on, data, on.stream, hand_off); !given) return given.error().what;
              if (std::string wrong = went_by(on, hand_off); !wrong.empty()) return wrong;
            }
            (*graph)->launch(on.stream);
          }
          const bool right = data.all(int64_t{1} << 15);
          graph->reset();
          if (const Status ended = on.device.finish(); !ended) return ended.error().what;
          return right ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("callers by packets leave the thread of the host no more than so many calls behind", "[device][packets]") {
  for (const bool in_graphs : {false, true}) {
    std::atomic<uint64_t> given{0};
    CHECK(run_device_ranks(2, packet_settings(), [&](DeviceRank& on) -> std::string {
            if (std::string wrong = first_small_call(on); !wrong.empty()) return wrong;
            test::DeviceArray<int64_t> data(on, std::vector<int64_t>(3, 1));
            if (!in_graphs) return runs_ahead(on, given);
            const auto graph = test::capture(on.stream, [&] { return test::sum(on, data); });
            return graph ? runs_ahead(on, given) : graph.error().what;
          }) == "");
  }
}

// Where one communicator's memory was is the next one's, whose first calls have the flags of that one's.
TEST_CASE("packets of a communicator that has ended are no other's", "[device][packets]") {
  CHECK(run_device_ranks(2, packet_settings(), [](DeviceRank& on) -> std::string {
          for (int64_t turn = 1; turn <= 4; ++turn) {
            const auto next = test::second_communicator(on);
            if (!next) return next.error().what;
            DeviceRank rank{on.host, **next, on.gpu, on.stream};
            if (std::string wrong = first_small_call(rank); !wrong.empty()) return wrong;
            for (int64_t call = 0; call < 3; ++call) {
              test::DeviceArray<int64_t> data(on, std::vector<int64_t>(200, turn * 10 + call));
              if (on.rank() == 1) on.stream.add([] { std::this_thread::sleep_for(2ms); });
              if (const Status given = test::sum(rank, data); !given) return given.error().what;
              if (!data.all(2 * (turn * 10 + call))) return fmt::format("communicator {}, call {}: a wrong sum", turn, call);
            }
            if (const Status ended = rank.device.finish(); !ended) return ended.error().what;
            if (const Status met = on.host.bootstrap().barrier(); !met) return met.error().what;
          }
          return {};
        }) == "");
}
