// A graph that runs after its communicator has ended: an error of the GPU, which a real one would not survive.
#include <atomic>
#include <chrono>
#include <thread>

#include "test/becomes.h"
#include "test/catch.h"
#include "test/engine/graph_ranks.h"
#include "test/simt/executor.h"
#include "test/text.h"

using namespace gyre;
using namespace std::chrono_literals;

TEST_CASE("a graph launched after its communicator has ended fails, and hangs nobody", "[device][graph]") {
  const int before = simt::failed_kernels();
  CHECK(test::run_device_ranks(2, {"GYRE_TRANSPORT=loopback"}, [](test::DeviceRank& on) -> std::string {
          auto ending = test::second_communicator(on);
          if (!ending) return ending.error().what;
          test::DeviceRank rank{on.host, **ending, on.gpu, on.stream};
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(5000, 1));
          auto graph = test::capture(on.stream, [&] { return test::sum(rank, data); });
          if (!graph) return graph.error().what;
          (*graph)->launch(on.stream);
          if (!data.all(2)) return "a wrong sum";
          if (Status met = on.host.bootstrap().barrier(); !met) return met.error().what;  // its stream has passed, too
          ending->reset();
          (*graph)->launch(on.stream);
          if (!on.stream.done_within(1s)) return "the stream does not end";
          graph->reset();
          return data.all(2) ? "" : "something was written";
        }) == "");
  CHECK(simt::failed_kernels() > before);
}

TEST_CASE("a communicator that ends while a graph of its runs fails it, and hangs nobody", "[device][graph]") {
  const int before = simt::failed_kernels();
  std::atomic<bool> ended = false;
  CHECK(test::run_device_ranks(2, {"GYRE_TRANSPORT=loopback"}, [&](test::DeviceRank& on) -> std::string {
          auto ending = test::second_communicator(on);
          if (!ending) return ending.error().what;
          test::DeviceRank rank{on.host, **ending, on.gpu, on.stream};
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(5000, 1));
          if (!on.stream.done()) return "nothing was copied";
          auto graph = test::capture(on.stream, [&] { return test::sum(rank, data); });
          if (!graph) return graph.error().what;
          if (on.rank() == 1) return test::becomes([&] { return ended.load(); }) ? "" : "rank 0 does not end";
          (*graph)->launch(on.stream);
          const bool assigned = test::becomes([&] { return !rank.device.idle(); });
          ending->reset();
          ended = true;
          if (!assigned) return "the graph is assigned nothing";
          return on.stream.done_within(1s) ? "" : "the stream does not end";
        }) == "");
  CHECK(simt::failed_kernels() > before);
}

TEST_CASE("a graph launched after its communicator has finished fails also where another rank has gone since", "[device][graph]") {
  const int before = simt::failed_kernels();
  std::atomic<int> finished = 0;
  CHECK(test::run_device_ranks(2, {"GYRE_TRANSPORT=loopback"}, [&](test::DeviceRank& on) -> std::string {
          auto ending = test::second_communicator(on);
          if (!ending) return ending.error().what;
          test::DeviceRank rank{on.host, **ending, on.gpu, on.stream};
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(5000, 1));
          auto graph = test::capture(on.stream, [&] { return test::sum(rank, data); });
          if (!graph) return graph.error().what;
          const Status ended = rank.device.finish();
          ++finished;
          if (!ended) return ended.error().what;
          if (!test::becomes([&] { return finished == 2; })) return "the other does not finish";
          if (on.rank() == 1) return rank.device.abort("gone"), "";
          if (const std::string said = test::error_of(rank); !test::contains(said, "gone")) return said;
          ending->reset();
          (*graph)->launch(on.stream);
          return on.stream.done_within(1s) ? "" : "the stream does not end";
        }) == "");
  CHECK(simt::failed_kernels() > before);
}
