// A rank that goes on no more in the midst of a call by memory that ranks reach: what the other is told of the step and the piece.
#include <fmt/format.h>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/heap_allocator.h"
#include "test/processes.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::contains;
using gyre::test::error_of;

namespace {

/// Rank 1 has shown its part before rank 0 comes, and moves no more, or where it is to stop amid pieces, until it has the first piece's
/// sum.
template <class Memory>
std::string stopped(Communicator& communicator, const Call& call, bool amid_pieces) {
  Memory input(call.count, 1), output(2 * call.count, 0);  // an all-gather's
  const bool stops = communicator.rank() == 1;
  const auto meet = [&] { return communicator.bootstrap().barrier(); };
  if (const Status met = stops ? Status() : meet(); !met) return error_of(met);
  const auto request = communicator.start(call, input.data(), output.data(), std::chrono::milliseconds(500));
  if (!request) return error_of(request);
  if (!stops) return error_of(communicator.wait(*request));
  if (const Status met = meet(); !met) return error_of(met);
  while (amid_pieces && output[0] == 0) {
    if (const auto done = communicator.test(*request); !done) return error_of(done);
  }
  return communicator.bootstrap().wait_for_failure(std::chrono::seconds(8)) == nullptr ? "no failure" : "";
}

// As processes: what a thread has in flight is moved by others of its process that wait.
template <class Memory>
std::string told_of_one_stopped(Collective collective, size_t count, bool amid_pieces) {
  const Call call{collective, count, DataType::float32, ReduceOp::sum, 0};
  return test::run_processes(2, all_configured({"GYRE_TRANSPORT=shm", "GYRE_ATTACH=2"}),
                             [&](Communicator& communicator) { return stopped<Memory>(communicator, call, amid_pieces); })[0];
}

}  // namespace

TEST_CASE("a deadline within a call by memory that ranks reach names rank, step and piece") {
  const auto says = [](const std::string& said, const std::string& awaited) {
    INFO(said);
    CHECK(contains(said, "nothing has moved for 0.5 s; rank 0 was in call 0, "));
    CHECK(contains(said, "waiting for rank 1 to be done with " + awaited + " in step 2 (leave), by shm"));
  };
  says(told_of_one_stopped<test::HeapVector<float>>(Collective::all_reduce, 100'000, false), "this rank's memory");
  says(told_of_one_stopped<std::vector<float>>(Collective::all_reduce, 300'000, false), "piece 1 of 2");
  says(told_of_one_stopped<std::vector<float>>(Collective::all_reduce, 4 << 20, true), "piece 2 of 16");
  says(told_of_one_stopped<std::vector<float>>(Collective::all_gather, 100'000, false), "its part");
}
