// Calls that are one kernel on each rank, which works on all ranks' buffers where they lie: the same bits as by messages, and less moved.
#include <fmt/format.h>

#include <random>

#include "engine/device_mapped.h"
#include "test/catch.h"
#include "test/engine/graph_ranks.h"
#include "test/slow_builds.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::engine;
using test::DeviceRank;
using test::run_device_ranks;

namespace {

const std::vector<std::string> mapped_settings{"GYRE_TRANSPORT=loopback", "GYRE_SLOT_BYTES=4K", "GYRE_ALGORITHM=two_shot"};

std::string went(DeviceRank& on, HandOff wanted) {
  return on.device.given().hand_off == wanted ? "" : fmt::format("hand-off {}", static_cast<int>(on.device.given().hand_off));
}

std::string same_bits_mapped(DeviceRank& on, Call call, bool in_place) {
  if (call.op == ReduceOp::premul_sum) call.scalar = kernels::avg_scalar_bits(call.type, 3 + on.rank());
  const std::string wrong = test::same_bits(on, call, HandOff::mapped, in_place);
  return wrong.empty() ? went(on, HandOff::mapped) : wrong;
}

std::string every_operation_mapped(DeviceRank& on) {
  for (const DataType type : all_data_types()) {
    for (size_t op = 0; op < every_reduce_op_count; ++op) {
      for (const size_t count : {size_t{1}, size_t{533}, size_t{4099}}) {
        const Call call{Collective::all_reduce, count, type, static_cast<ReduceOp>(op), 0};
        if (std::string wrong = same_bits_mapped(on, call, (op + count) % 2 == 0); !wrong.empty()) return wrong;
      }
    }
  }
  return {};
}

/// Each rank's buffers lie otherwise, and one rank's in place.
std::string anywhere(DeviceRank& on, size_t count) {
  const auto shift = static_cast<size_t>(on.rank() + 1);
  std::vector<uint16_t> values(2 * (count + 16), 7);
  for (size_t i = 0; i < count; ++i) values[shift + i] = static_cast<uint16_t>(i * 3 + shift);
  test::DeviceArray<uint16_t> data(on, values);
  uint16_t* const input = data.data() + shift;
  uint16_t* const output = on.rank() == 1 ? input : input + count + shift;
  // Sums wrap as integers' do: float16 has no arithmetic that is as easily written down.
  const Call call{Collective::all_reduce, count * 2, DataType::uint8, ReduceOp::max, 0};
  if (const Status given = on.device.enqueue(call, input, output, on.stream.handle()); !given) return given.error().what;
  if (std::string wrong = went(on, HandOff::mapped); !wrong.empty()) return wrong;
  const std::vector<uint16_t> found = data.get();
  auto expected = values;
  for (size_t i = 0; i < count; ++i) {
    uint16_t all = 0;
    for (size_t r = 1; r <= static_cast<size_t>(on.size()); ++r) {
      const auto theirs = static_cast<uint16_t>(i * 3 + r);
      all = static_cast<uint16_t>(std::max(all & 0xff, theirs & 0xff) | std::max(all & 0xff00, theirs & 0xff00));
    }
    expected[static_cast<size_t>(output - data.data()) + i] = all;
  }
  return found == expected ? "" : fmt::format("{} elements: not what there should be", count);
}

std::string collectives_mapped(DeviceRank& on, std::initializer_list<Collective> collectives) {
  for (const Collective collective : collectives) {
    for (Rank root = 0; root < (rooted(collective) ? on.size() : 1); ++root) {
      for (const auto& [type, op] : {std::pair{DataType::float32, ReduceOp::avg}, {DataType::float8e4m3, ReduceOp::premul_sum}}) {
        for (const bool in_place : {false, true}) {
          if (std::string wrong = same_bits_mapped(on, {collective, 1001, type, op, root}, in_place); !wrong.empty()) return wrong;
        }
      }
    }
  }
  return {};
}

/// Many calls one behind another, on two streams and two communicators, to which ranks come late at times of their own.
std::string mapped_at_odd_times(DeviceRank& on, int calls) {
  const auto second = test::second_communicator(on);
  if (!second) return second.error().what;
  DeviceRank rank{on.host, **second, on.gpu, on.stream};
  const auto other = on.gpu.open_stream();
  std::mt19937 random(static_cast<unsigned>(on.rank()));
  const auto part = [](int call, Rank of) { return int64_t{call} * 1000 + of; };
  std::vector<test::DeviceArray<int64_t>> all;
  for (int call = 0; call < calls; ++call) all.emplace_back(on, std::vector<int64_t>(size_t{1} << call % 12, part(call, on.rank())));
  if (!on.stream.done()) return "nothing was copied";
  for (int call = 0; call < calls; ++call) {
    test::TestStream& stream = call % 5 == 0 ? *other : on.stream;
    if (random() % 4 == 0) stream.add([time = random() % 2000] { std::this_thread::sleep_for(std::chrono::microseconds(time)); });
    DeviceRank& by = call % 3 == 0 ? rank : on;
    if (const Status given = test::sum(by, all[static_cast<size_t>(call)], stream); !given) return given.error().what;
    if (std::string wrong = went(by, HandOff::mapped); !wrong.empty()) return wrong;
  }
  if (!other->done()) return "a stream does not end";
  for (int call = 0; call < calls; ++call) {
    int64_t sum = 0;
    for (Rank r = 0; r < on.size(); ++r) sum += part(call, r);
    if (!all[static_cast<size_t>(call)].all(sum)) return fmt::format("call {}: a wrong sum", call);
  }
  return rank.device.finish() ? "" : "the second does not finish";
}

}  // namespace

TEST_CASE("a mapped form stands for schedules that reduce each chunk at once, and has their order", "[mapped]") {
  const auto form = [](const char* family, const topo::Shape& shape, const std::vector<schedule::RankOrder>& orders = {}) {
    const auto proven = prove(family, shape, {4, 4096}, orders);
    REQUIRE(proven);
    return mapped_form(*Plan::make(*proven, {shape.collective, 1000, DataType::float32, ReduceOp::sum, shape.root}, 4096));
  };
  for (const auto& family : topo::families()) {
    const topo::Shape shape{Collective::all_reduce, 4, 1, 0, {}};
    if (!topo::refusal(family, shape).empty() || topo::lacks_nodes(family, shape)) continue;
    INFO(family.name);
    CHECK((form(std::string(family.name).c_str(), shape) != nullptr) == (family.name == std::string_view("two_shot")));
  }
  const std::vector<Rank> order{2, 0, 1};
  CHECK(form("two_shot", {Collective::all_reduce, 3, 1, 0, {}}, {order})->order == order);
  CHECK(form("two_shot", {Collective::all_reduce, 3, 2, 0, {}}) == nullptr);
  CHECK(form("two_shot", {Collective::all_reduce, 3, 1, 0, {}, true}) == nullptr);
}

TEST_CASE("every type and operation gives the host's bits mapped", "[device][mapped]") {
  for (const int ranks : test::sampled(std::array{3, 2, 4})) {
    INFO(ranks << " ranks");
    CHECK(run_device_ranks(ranks, mapped_settings, every_operation_mapped) == "");
  }
}

TEST_CASE("mapped, 5 to 8 ranks have the host's bits", "[device][mapped]") {
  for (const int ranks : test::sampled(std::array{8, 5, 6, 7})) {
    INFO(ranks << " ranks");
    CHECK(
        run_device_ranks(ranks, mapped_settings, [](DeviceRank& on) -> std::string {
          for (const auto& [type, op] : {std::pair{DataType::float16, ReduceOp::premul_sum},
                                         {DataType::float32, ReduceOp::avg},
                                         {DataType::bfloat16, ReduceOp::sum},
                                         {DataType::int8, ReduceOp::avg}}) {
            if (std::string wrong = same_bits_mapped(on, {Collective::all_reduce, 10007, type, op, 0}, on.size() % 2 == 0); !wrong.empty())
              return wrong;
          }
          return {};
        }) == "");
  }
}

TEST_CASE("mapped buffers lie anywhere, and one rank's in place where others' do not", "[device][mapped]") {
  CHECK(run_device_ranks(3, mapped_settings, [](DeviceRank& on) -> std::string {
          for (const size_t count : {size_t{1}, size_t{31}, size_t{1000}, size_t{5555}}) {
            if (std::string wrong = anywhere(on, count); !wrong.empty()) return wrong;
          }
          return {};
        }) == "");
}

TEST_CASE("what every rank does a share of in two hops, or for itself in one, is mapped", "[device][mapped]") {
  auto by_one_shot = mapped_settings;
  by_one_shot.emplace_back("GYRE_ALGORITHM=one_shot");
  for (const int ranks : test::sampled(std::array{3, 2, 4})) {
    CHECK(run_device_ranks(ranks, mapped_settings, [](DeviceRank& on) {
            return collectives_mapped(on, {Collective::all_reduce, Collective::broadcast, Collective::reduce});
          }) == "");
    CHECK(run_device_ranks(ranks, by_one_shot, [](DeviceRank& on) {
            return collectives_mapped(on, {Collective::reduce_scatter, Collective::all_gather});
          }) == "");
  }
}

TEST_CASE("a mapped all-reduce moves twice its bytes on each rank", "[device][mapped]") {
  CHECK(run_device_ranks(4, mapped_settings, [](DeviceRank& on) -> std::string {
          constexpr size_t count = 1 << 14;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(count, 1));
          if (const Status given = test::sum(on, data); !given) return given.error().what;
          const auto& given = on.device.given();
          if (!data.all(on.size())) return "a wrong sum";
          return given.bytes == 2 * count * sizeof(int64_t) && given.kernels == 1 ? "" : fmt::format("{} bytes", given.bytes);
        }) == "");
}

TEST_CASE("mapped are calls of ranks that reach each other, by two_shot on one channel and in any order", "[device][mapped]") {
  const auto by = [](HandOff wanted, size_t count = 100) {
    return [wanted, count](DeviceRank& on) -> std::string {
      test::DeviceArray<int64_t> data(on, std::vector<int64_t>(count, 1));
      if (const Status given = test::sum(on, data); !given) return given.error().what;
      return data.all(on.size()) ? went(on, wanted) : "a wrong sum";
    };
  };
  const auto with = [](const std::string& setting) {
    auto settings = mapped_settings;
    settings.push_back(setting);
    return settings;
  };
  CHECK(run_device_ranks(3, mapped_settings, by(HandOff::mapped)) == "");
  CHECK(run_device_ranks(3, with("GYRE_ALGORITHM=auto"), by(HandOff::mapped, 1 << 16)) == "");  // by its price
  CHECK(run_device_ranks(3, with("GYRE_ALGORITHM=ring"), by(HandOff::gates)) == "");
  CHECK(run_device_ranks(3, with("GYRE_CHANNELS=2"), by(HandOff::gates)) == "");
  CHECK(run_device_ranks(3, mapped_settings, by(HandOff::gates), test::Reach::none) == "");
  CHECK(run_device_ranks(3, mapped_settings, by(HandOff::gates), test::Reach::some) == "");
  CHECK(run_device_ranks(3, with("GYRE_NUMERICS=ordered"), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = by(HandOff::mapped)(on); !wrong.empty()) return wrong;  // integers have the same sums in any order
          const Call call{Collective::all_reduce, 100, DataType::float32, ReduceOp::sum, 0};
          const std::string wrong = test::same_bits(on, call, HandOff::mapped, true);
          return wrong.empty() ? went(on, HandOff::gates) : wrong;
        }) == "");
  CHECK(run_device_ranks(3, mapped_settings, [&](DeviceRank& on) -> std::string {
          const Call none{Collective::all_reduce, 0, DataType::float32, ReduceOp::sum, 0};
          const std::string wrong = test::same_bits(on, none, HandOff::mapped, true);
          return wrong.empty() ? went(on, HandOff::gates) : wrong;
        }) == "");
}

TEST_CASE("mapped calls come in any order and as late as they like, by several streams and communicators", "[device][mapped]") {
  for (const int ranks : test::sampled(std::array{3, 2, 4}))
    CHECK(run_device_ranks(ranks, mapped_settings, [](DeviceRank& on) { return mapped_at_odd_times(on, 60); }) == "");
}

TEST_CASE("ranks meet for mapped calls over whatever joins them", "[device][mapped]") {
  // That two mappings of one process are the same memory, as those of shm are, no sanitizer sees.
  for (const std::string& transport : test::sanitized ? std::vector<std::string>{"tcp"} : std::vector<std::string>{"tcp", "shm"}) {
    INFO(transport);
    auto settings = mapped_settings;
    settings.front() = "GYRE_TRANSPORT=" + transport;
    CHECK(run_device_ranks(3, settings, [](DeviceRank& on) { return mapped_at_odd_times(on, 20); }) == "");
  }
}

TEST_CASE("mapped calls, steps and replays of graphs follow each other, with the same bits", "[device][mapped][graph]") {
  CHECK(run_device_ranks(2, mapped_settings, [](DeviceRank& on) -> std::string {
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(3000, 1));
          auto graph = test::capture(on.stream, [&] { return test::sum(on, data); });
          if (!graph) return graph.error().what;
          for (int round = 0; round < 3; ++round) {
            for (const auto hand_off : {HandOff::mapped, HandOff::stays, HandOff::mapped, HandOff::gates}) {
              if (const Status given = test::sum(on, data, on.stream, hand_off); !given) return given.error().what;
              if (std::string wrong = went(on, hand_off); !wrong.empty()) return wrong;
            }
            (*graph)->launch(on.stream);
          }
          const bool right = data.all(int64_t{1} << 15);
          graph->reset();
          if (const Status ended = on.device.finish(); !ended) return ended.error().what;
          const Call call{Collective::all_reduce, 3000, DataType::float32, ReduceOp::avg, 0};
          const std::string wrong = test::same_bits_in_a_graph(on, call);
          if (!wrong.empty()) return wrong;
          return right ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("one thread gives all ranks mapped calls, before any of them can move", "[device][mapped]") {
  CHECK(test::given_by_one_thread(4, mapped_settings, [](const std::vector<DeviceRank*>& all) -> std::string {
          std::vector<test::DeviceArray<int64_t>> data;
          for (DeviceRank* on : all) data.emplace_back(*on, std::vector<int64_t>(10000, 1));
          for (size_t r = 0; r < all.size(); ++r) {
            for (int i = 0; i < 3; ++i) {
              if (const Status status = test::sum(*all[r], data[r]); !status) return status.error().what;
              if (std::string wrong = went(*all[r], HandOff::mapped); !wrong.empty()) return wrong;
            }
          }
          return std::all_of(data.begin(), data.end(), [](auto& sum) { return sum.all(64); }) ? "" : "a wrong sum";
        }) == "");
}
