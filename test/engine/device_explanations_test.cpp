// What GYRE_EXPLAIN has rank 0 say of collectives on a GPU's streams.
#include <fmt/format.h>

#include "test/catch.h"
#include "test/engine/device_ranks.h"
#include "test/engine/gpu_rows.h"
#include "test/engine/graph_ranks.h"
#include "test/kept_log.h"

using namespace gyre;
using namespace gyre::engine;
using test::DeviceRank;

namespace {

/// Two all-reduces of a kind and one of another; the host's communicator runs none.
std::string three_on_device(DeviceRank& on) {
  test::DeviceArray<float> data(on, std::vector<float>(2000, 1));
  for (const size_t count : {1500u, 1100u, 2u}) {
    const Call call{Collective::all_reduce, count, DataType::float32, ReduceOp::sum, 0};
    if (const Status given = on.device.enqueue(call, data.data(), data.data(), on.stream.handle()); !given) return given.error().what;
  }
  return data.get().empty() ? "the stream does not end" : "";
}

}  // namespace

TEST_CASE("each kind of call on a device is explained once, by one rank, and counted at the end") {
  for (const test::RowOfRank row :
       {test::RowOfRank(nullptr), test::RowOfRank([](Rank r, int n) { return test::row_of_circle(r, n, 1); })}) {
    const test::KeptLog log(log::Level::error);
    CHECK(test::run_device_ranks(3, {"GYRE_TRANSPORT=loopback", "GYRE_ALGORITHM=ring", "GYRE_EXPLAIN=1"}, three_on_device, test::Reach::all,
                                 row) == "");
    CHECK(log.count("explain: all_reduce, blocks of 4096 to 8191 bytes: ring runs, predicted ") == 1);
    CHECK(log.count("explain: all_reduce, blocks of 8 to 15 bytes: ring runs, predicted ") == 1);
    CHECK(log.count("explain: all_reduce, blocks of 4096 to 8191 bytes: ring ran 2 times") == 1);
    CHECK(log.count("explain: all_reduce, blocks of 8 to 15 bytes: ring ran 1 times") == 1);
    CHECK(log.count("explain:") == 4);
  }
}

TEST_CASE("a graph's replays are counted, and its capture is not", "[graph]") {
  const test::KeptLog log(log::Level::error);
  CHECK(test::run_device_ranks(2, {"GYRE_TRANSPORT=loopback", "GYRE_ALGORITHM=ring", "GYRE_EXPLAIN=1"}, [](DeviceRank& on) -> std::string {
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(1000, 1));
          const auto graph = test::capture(on.stream, [&] { return test::sum(on, data); });
          if (!graph) return graph.error().what;
          for (int replay = 0; replay < 3; ++replay) (*graph)->launch(on.stream);
          return data.all(8) ? "" : "a wrong sum";
        }) == "");
  CHECK(log.count("explain: all_reduce, blocks of 4096 to 8191 bytes: ring runs, predicted ") == 1);
  CHECK(log.count("explain: all_reduce, blocks of 4096 to 8191 bytes: ring ran 3 times") == 1);
  CHECK(log.count("explain:") == 2);
}
