// How graphs of collectives end: communicators that finish while they run, aborts, ranks that replay unlike each other.
#include <atomic>
#include <span>
#include <thread>

#include "test/becomes.h"
#include "test/catch.h"
#include "test/engine/graph_ranks.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using test::capture;
using test::contains;
using test::DeviceRank;
using test::run_device_ranks;
using namespace std::chrono_literals;

namespace {

const std::vector<std::string> settings_of_ends{"GYRE_TRANSPORT=loopback", "GYRE_SLOT_BYTES=4K"};

}  // namespace

TEST_CASE("a communicator finishes no sooner than a graph that was launched, wherever that is", "[device][graph]") {
  CHECK(run_device_ranks(2, settings_of_ends, [](DeviceRank& on) -> std::string {
          auto ending = test::second_communicator(on);
          if (!ending) return ending.error().what;
          DeviceRank rank{on.host, **ending, on.gpu, on.stream};
          std::atomic<int> late = 0;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(5000, 1));
          if (!on.stream.done()) return "nothing was copied";
          const auto slowly = [&] {
            on.stream.add([&] {
              std::this_thread::sleep_for(300ms);
              ++late;
            });
            return test::sum(rank, data);
          };
          auto graph = capture(on.stream, [&]() -> Status {
            GYRE_TRY(slowly());  // launched, and not begun
            return slowly();     // between two
          });
          if (!graph) return graph.error().what;
          (*graph)->launch(on.stream);
          if (Status ended = rank.device.finish(); !ended) return ended.error().what;
          const bool waited = late == 2 && on.stream.done();  // its last kernel may just be leaving
          ending->reset();
          return waited && data.all(4) ? "" : "it did not wait";
        }) == "");
}

TEST_CASE("a communicator finishes at once when its graphs are gone, and soon when they only might run", "[device][graph]") {
  CHECK(run_device_ranks(2, settings_of_ends, [](DeviceRank& on) -> std::string {
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(5000, 1));
          if (!on.stream.done()) return "nothing was copied";
          auto graph = capture(on.stream, [&] { return test::sum(on, data); });
          if (!graph) return graph.error().what;
          (*graph)->launch(on.stream);
          if (!data.all(2)) return "a wrong sum";
          const auto begin = std::chrono::steady_clock::now();
          if (Status ended = on.device.finish(); !ended) return ended.error().what;
          const auto alive = std::chrono::steady_clock::now();
          graph->reset();
          while (on.device.in_graphs() && std::chrono::steady_clock::now() - alive < 20s) std::this_thread::yield();
          if (on.device.in_graphs()) return "the graph is not gone";
          const auto gone = std::chrono::steady_clock::now();
          if (Status ended = on.device.finish(); !ended) return ended.error().what;
          const auto finished = std::chrono::steady_clock::now();
          return alive - begin < 10s && finished - gone < 1s ? "" : "it took long";
        }) == "");
}

TEST_CASE("an abort frees a stream on which a graph runs, and a graph launched later; where others hear of it one holds its stream",
          "[device][graph]") {
  for (const test::Way& way : std::span(test::every_way).last(2)) {
    std::atomic<int> captured = 0;
    CHECK(run_device_ranks(
              2, settings_of_ends,
              [&](DeviceRank& on) -> std::string {
                test::DeviceArray<int64_t> data(on, std::vector<int64_t>(50000, 1));
                if (!on.stream.done()) return "nothing was copied";
                auto graph = capture(on.stream, [&]() -> Status {
                  GYRE_TRY(test::sum(on, data));
                  return test::sum(on, data);
                });
                if (!graph) return graph.error().what;
                ++captured;
                if (!test::becomes([&] { return captured == 2; })) return "the other has captured nothing";
                if (on.rank() == 0) {
                  (*graph)->launch(on.stream);
                  if (on.stream.done_within(50ms)) return "it ended without rank 1";
                  on.device.abort("enough");
                  if (!on.stream.done_within(1s)) return "the stream is not free";
                }
                const std::string said = test::error_of(on);
                if (!contains(said, "aborted: enough")) return said;
                (*graph)->launch(on.stream);
                if (on.rank() == 1) return test::held_until_abort(on);
                return on.stream.done_within(1s) ? "" : "a later launch does not end";
              },
              way.reach) == "");
  }
}

TEST_CASE("an abort while a graph might run, and nothing does, is noticed", "[device][graph]") {
  std::atomic<int> captured = 0;
  CHECK(run_device_ranks(2, settings_of_ends, [&](DeviceRank& on) -> std::string {
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(100, 1));
          auto graph = capture(on.stream, [&] { return test::sum(on, data); });
          if (!graph) return graph.error().what;
          ++captured;
          if (!test::becomes([&] { return captured == 2; })) return "the other has captured nothing";
          if (on.rank() == 0) on.device.abort("enough");
          if (!contains(test::error_of(on), "aborted: enough")) return "it is not known";
          (*graph)->launch(on.stream);
          if (on.rank() == 1) return test::held_until_abort(on);
          return on.stream.done_within(1s) ? "" : "a later launch does not end";
        }) == "");
}

TEST_CASE("ranks that replay different graphs, or a graph and a call, learn of it", "[device][graph]") {
  for (const bool by_call : {false, true}) {
    CHECK(run_device_ranks(2, settings_of_ends, [&](DeviceRank& on) -> std::string {
            test::DeviceArray<int64_t> data(on, std::vector<int64_t>(5000, 1));
            std::array<test::GraphPointer, 2> graphs;
            for (test::GraphPointer& graph : graphs) {
              auto made = capture(on.stream, [&] { return test::sum(on, data); });
              if (!made) return made.error().what;
              graph = *std::move(made);
            }
            if (by_call && on.rank() == 1) {
              if (Status given = test::sum(on, data); !given) {
                on.device.abort("the test has seen enough");
                return contains(given.error().what, "differ") ? "" : given.error().what;
              }
            } else {
              graphs.at(static_cast<size_t>(on.rank()))->launch(on.stream);
            }
            const std::string said = test::error_of(on);
            return said == "nothing is wrong" ? said : test::held_until_abort(on);
          }) == "");
  }
}

TEST_CASE("a graph and a call on streams that do not wait for each other give right sums, or an error", "[device][graph]") {
  CHECK(run_device_ranks(2, settings_of_ends, [](DeviceRank& on) -> std::string {
          const auto other = on.gpu.open_stream();
          test::DeviceArray<int64_t> in_graph(on, std::vector<int64_t>(3000, 1)), called(on, std::vector<int64_t>(3000, 1));
          if (!on.stream.done()) return "nothing was copied";
          auto graph = capture(on.stream, [&] { return test::sum(on, in_graph); });
          if (!graph) return graph.error().what;
          for (int i = 0; i < 20; ++i) {
            (*graph)->launch(on.stream);
            if (!test::sum(on, called, *other)) break;  // an error, which status() has too
          }
          while (on.device.status() && !(on.stream.done_within(1ms) && other->done_within(1ms))) continue;
          const bool failed = !on.device.finish();
          if (failed) on.device.abort("the test has seen enough");
          if (!on.stream.done() || !other->done()) return "a stream does not end";
          if (failed) return "";
          return in_graph.all(1 << 20) && called.all(1 << 20) ? "" : "a wrong sum, in silence";
        }) == "");
}

TEST_CASE("no memory is taken for graphs while a collective is under way", "[device][graph]") {
  CHECK(run_device_ranks(2, settings_of_ends, [](DeviceRank& on) -> std::string {
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(100, 1)), other(on, std::vector<int64_t>(100, 1));
          const auto side = on.gpu.open_stream();
          if (!on.stream.done()) return "nothing was copied";
          std::atomic<bool> goes_on = false;
          side->add([&] {
            while (!goes_on) std::this_thread::yield();
          });
          if (Status given = test::sum(on, other, *side); !given) return given.error().what;
          const auto graph = capture(on.stream, [&]() -> Status {
            for (int i = 0; i < 2000; ++i) GYRE_TRY(test::sum(on, data));
            return {};
          });
          goes_on = true;
          if (graph || !contains(graph.error().what, "while a collective is under way")) return "it was taken";
          if (Status given = test::sum(on, data); !given) return given.error().what;
          return data.all(2) && other.all(2) ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("a rank that has no room for a collective in a graph, where others do, goes on with them", "[device][graph]") {
  CHECK(run_device_ranks(2, settings_of_ends, [](DeviceRank& on) -> std::string {
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(100, 1)), other(on, std::vector<int64_t>(100, 1));
          const auto side = on.gpu.open_stream();
          if (!on.stream.done()) return "nothing was copied";
          int refused = 0;
          const auto many = [&]() -> Status {
            for (int i = 0; i < 300; ++i) refused += test::sum(on, data) ? 0 : 1;
            return {};
          };
          auto first = capture(on.stream, many);
          if (on.rank() == 1) {
            first->reset();
            while (on.device.in_graphs()) std::this_thread::yield();
          }
          std::atomic<bool> goes_on = false;
          side->add([&] {
            while (!goes_on) std::this_thread::yield();
          });
          if (Status given = test::sum(on, other, *side); !given) return given.error().what;
          const auto second = capture(on.stream, many);
          goes_on = true;
          if ((refused > 0) != (on.rank() == 0)) return "another rank was refused";
          for (int i = 0; i < 3; ++i) {
            if (Status given = test::sum(on, data); !given) return given.error().what;
          }
          const bool right = data.all(8) && other.all(2);
          if (Status works = on.device.status(); !works) return works.error().what;
          return right ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("any number of calls without kernels may be made while graphs hold collectives", "[device][graph]") {
  CHECK(run_device_ranks(1, settings_of_ends, [](DeviceRank& on) -> std::string {
          test::DeviceArray<float> data(on, std::vector<float>(100, 1));
          const auto call = [&](Collective collective, float* output) {
            const Call made{collective, 100, DataType::float32, ReduceOp::avg, 0};
            return on.device.enqueue(made, data.data(), output, on.stream.handle());
          };
          test::DeviceArray<float> other(on, std::vector<float>(100, 0));
          if (!on.stream.done()) return "nothing was copied";
          const auto graph = capture(on.stream, [&] { return call(Collective::all_reduce, other.data()); });
          if (!graph) return graph.error().what;
          for (int i = 0; i < 1500; ++i) {
            if (Status given = call(Collective::all_gather, data.data()); !given) return given.error().what;
          }
          (*graph)->launch(on.stream);
          if (Status ended = on.device.finish(); !ended) return ended.error().what;
          return other.all(1) ? "" : "a wrong result";
        }) == "");
}
