// Collectives in CUDA graphs: replay after replay, with all else in the order of streams.
#include <array>
#include <span>

#include "test/catch.h"
#include "test/engine/graph_ranks.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using test::capture;
using test::DeviceRank;
using test::run_device_ranks;
using namespace std::chrono_literals;

namespace {

const std::vector<std::string> graph_settings{"GYRE_TRANSPORT=loopback", "GYRE_SLOT_BYTES=4K"};

}  // namespace

TEST_CASE("a captured collective runs at each replay, and others between them", "[device][graph]") {
  for (const test::Way& way : test::every_way) {
    for (const int ranks : {2, 3}) {
      CHECK(run_device_ranks(
                ranks, graph_settings,
                [&](DeviceRank& on) -> std::string {
                  test::DeviceArray<int64_t> data(on, std::vector<int64_t>(3000, 1));
                  if (Status given = test::sum(on, data); !given) return given.error().what;  // before any graph
                  Result<test::GraphPointer> graph = capture(on.stream, [&] { return test::sum(on, data); });
                  if (!graph) return graph.error().what;
                  int64_t wanted = on.size();
                  if (!data.all(wanted)) return "it ran when it was captured";
                  for (int replay = 0; replay < 6; ++replay) {
                    (*graph)->launch(on.stream);
                    wanted *= on.size();
                    if (replay % 3 == 2) continue;
                    if (Status given = test::sum(on, data, on.stream, way.hand_off); !given) return given.error().what;
                    wanted *= on.size();
                  }
                  if (!data.all(wanted)) return "a wrong sum";
                  graph->reset();
                  if (Status given = test::sum(on, data); !given) return given.error().what;
                  return data.all(wanted * on.size()) ? "" : "a wrong sum after the graph";
                },
                way.reach) == "");
    }
  }
}

TEST_CASE("every collective gives the host's bits in a graph", "[device][graph]") {
  for (const test::Reach reach : test::every_reach) {
    CHECK(run_device_ranks(
              4, graph_settings,
              [](DeviceRank& on) -> std::string {
                std::string wrong;
                for (const Collective collective : all_collectives()) {
                  for (const size_t count : {size_t{0}, size_t{1}, size_t{20001}}) {
                    const Call call{collective, count, DataType::float16, ReduceOp::avg, rooted(collective) ? on.size() - 1 : 0};
                    if (wrong.empty()) wrong = test::same_bits_in_a_graph(on, call);
                  }
                }
                return wrong;
              },
              reach) == "");
  }
}

TEST_CASE("one rank alone captures what needs no kernel, and what does", "[device][graph]") {
  CHECK(run_device_ranks(1, graph_settings, [](DeviceRank& on) {
          std::string wrong = test::same_bits_in_a_graph(on, {Collective::all_gather, 1000, DataType::float32, ReduceOp::sum, 0});
          if (wrong.empty()) wrong = test::same_bits_in_a_graph(on, {Collective::all_reduce, 1000, DataType::float32, ReduceOp::avg, 0});
          return wrong;
        }) == "");
}

TEST_CASE("graphs hold several collectives, of several communicators, and so do several graphs", "[device][graph]") {
  CHECK(run_device_ranks(3, graph_settings, [](DeviceRank& on) -> std::string {
          const auto other = test::second_communicator(on);
          if (!other) return other.error().what;
          test::DeviceArray<int64_t> a(on, std::vector<int64_t>(500, 1)), b(on, std::vector<int64_t>(70000, 1));
          DeviceRank second{on.host, **other, on.gpu, on.stream};
          std::array<test::GraphPointer, 2> graphs;
          for (test::GraphPointer& graph : graphs) {
            auto made = capture(on.stream, [&]() -> Status {
              GYRE_TRY(test::sum(on, a));
              GYRE_TRY(test::sum(second, b));
              return test::sum(on, b);
            });
            if (!made) return made.error().what;
            graph = *std::move(made);
          }
          for (const size_t which : std::array<size_t, 4>{0, 1, 1, 0}) graphs.at(which)->launch(on.stream);
          const bool right = a.all(81) && b.all(6561);
          graphs = {};
          if (Status ended = (*other)->finish(); !ended) return ended.error().what;
          return right ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("graphs need no operations of streams on memory", "[device][graph]") {
  CHECK(run_device_ranks(2, graph_settings, [](DeviceRank& on) -> std::string {
          test::UnreachableGpu gpu(on.gpu.gpu(), false);
          const auto plain = test::second_communicator(on, gpu);
          if (!plain) return plain.error().what;
          DeviceRank rank{on.host, **plain, on.gpu, on.stream};
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(5000, 1));
          auto graph = capture(on.stream, [&] { return test::sum(rank, data); });
          if (!graph) return graph.error().what;
          for (int i = 0; i < 3; ++i) {
            (*graph)->launch(on.stream);
            if (Status given = test::sum(rank, data); !given) return given.error().what;
          }
          const bool right = data.all(64);
          graph->reset();
          if (Status ended = rank.device.finish(); !ended) return ended.error().what;
          return right ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("two launches of a graph at a time take turns", "[device][graph]") {
  CHECK(run_device_ranks(2, graph_settings, [](DeviceRank& on) -> std::string {
          const auto other = on.gpu.open_stream();
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(5000, 3)), ones(on, std::vector<int64_t>(5000, 1));
          if (!on.stream.done()) return "nothing was copied";
          const Call call{Collective::broadcast, 5000, DataType::int64, ReduceOp::sum, 0};
          auto graph = capture(on.stream, [&] { return on.device.enqueue(call, ones.data(), data.data(), on.stream.handle()); });
          if (!graph) return graph.error().what;
          for (int i = 0; i < 20; ++i) (*graph)->launch(i % 2 == 0 ? on.stream : *other);
          return other->done() && data.all(1) ? "" : "not what was sent";
        }) == "");
}

TEST_CASE("a call with wrong arguments is refused in a capture, and the communicator goes on", "[device][graph]") {
  CHECK(run_device_ranks(2, graph_settings, [](DeviceRank& on) -> std::string {
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(100, 1));
          const Call call{Collective::all_reduce, 100, DataType::int64, ReduceOp::sum, 0};
          const auto none = capture(on.stream, [&] { return on.device.enqueue(call, nullptr, data.data(), on.stream.handle()); });
          if (none) return "null was taken";
          auto graph = capture(on.stream, [&] { return test::sum(on, data); });
          if (!graph) return graph.error().what;
          (*graph)->launch(on.stream);
          return data.all(2) ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("more collectives are captured than there is room for at first", "[device][graph]") {
  CHECK(run_device_ranks(2, graph_settings, [](DeviceRank& on) -> std::string {
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(10, 1));
          const Call call{Collective::all_reduce, 10, DataType::int64, ReduceOp::max, 0};
          if (!on.stream.done()) return "nothing was copied";
          auto graph = capture(on.stream, [&]() -> Status {
            for (int i = 0; i < 700; ++i) GYRE_TRY(on.device.enqueue(call, data.data(), data.data(), on.stream.handle()));
            return {};
          });
          if (!graph) return graph.error().what;
          for (int i = 0; i < 2; ++i) (*graph)->launch(on.stream);
          return data.all(1) ? "" : "a wrong result";
        }) == "");
}
