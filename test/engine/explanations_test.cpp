// What GYRE_EXPLAIN has rank 0 say of the calls of a communicator on host memory.
#include "engine/explanations.h"

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/kept_log.h"
#include "test/ranks.h"

using namespace gyre;
using namespace gyre::engine;

namespace {

/// Three all-reduces of two kinds.
std::string three_calls(Communicator& all) {
  std::vector<float> data(2000);
  for (const size_t count : {1500u, 1100u, 2u}) {
    if (const Status ran = all.all_reduce(data.data(), data.data(), count, DataType::float32, ReduceOp::sum); !ran) return ran.error().what;
  }
  return {};
}

test::Words run_explained(const char* wanted) {
  return test::run_ranks(2, test::all_configured({"GYRE_TRANSPORT=loopback", "GYRE_ALGORITHM=ring", wanted}), three_calls);
}

}  // namespace

TEST_CASE("each kind of call is explained once, by one rank and whatever is logged, and counted at the end") {
  const test::KeptLog log(log::Level::error);
  CHECK(test::first_wrong(run_explained("GYRE_EXPLAIN=1")) == "");
  CHECK(log.count("explain: all_reduce, blocks of 4096 to 8191 bytes: ring runs, predicted ") == 1);
  CHECK(log.count("explain: all_reduce, blocks of 8 to 15 bytes: ring runs, predicted ") == 1);
  CHECK(log.count("halving_doubling") == 2);  // what could run, too
  CHECK(log.count("explain: all_reduce, blocks of 4096 to 8191 bytes: ring ran 2 times") == 1);
  CHECK(log.count("explain: all_reduce, blocks of 8 to 15 bytes: ring ran 1 times") == 1);
  CHECK(log.count("explain:") == 4);
}

TEST_CASE("who does not ask is told nothing") {
  const test::KeptLog log;
  CHECK(test::first_wrong(run_explained("GYRE_EXPLAIN=0")) == "");
  CHECK_FALSE(log.has("explain:"));
}
