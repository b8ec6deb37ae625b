// NCCL's interface by gyre alone: what ends communicators on GPU memory that do not block waits for no stream.
#include <array>
#include <future>

#include "test/catch.h"
#include "test/kept_log.h"
#include "test/plugin/host_cuda.h"
#include "test/plugin/nccl_ranks.h"

using namespace gyre;
using test::settled;
using namespace std::chrono_literals;

namespace {

/// Two ranks of this thread, each with a sum in its stream, the first behind a gate.
class TwoUnblocked {
 public:
  TwoUnblocked() {
    ncclConfig_t config = test::nccl_config();
    config.blocking = 0;
    const ncclUniqueId id = test::new_id();
    ncclGroupStart();
    for (int rank = 0; rank < 2; ++rank) ncclCommInitRankConfig(&comms.at(static_cast<size_t>(rank)), 2, id, rank, &config);
    ncclGroupEnd();
    for (const ncclComm_t comm : comms) REQUIRE(settled(comm) == ncclSuccess);
    streams_[0].add([opened = gate.get_future().share()] { opened.wait(); });
    for (size_t rank = 0; rank < 2; ++rank) {
      int* data = sums.at(rank).data();
      ncclAllReduce(data, data, 1000, ncclInt32, ncclSum, comms.at(rank), streams_.at(rank));
    }
    for (const ncclComm_t comm : comms) REQUIRE(settled(comm) == ncclSuccess);
  }

  /// By a thread, so that one that waits for its stream is seen, and ends.
  bool finalize_without_waiting(size_t rank) {
    auto finalized = std::async(std::launch::async, [comm = comms.at(rank)] { return ncclCommFinalize(comm); });
    const bool returned = finalized.wait_for(20s) == std::future_status::ready;
    if (!returned) gate.set_value();
    const ncclResult_t result = finalized.get();
    return returned && result == ncclInProgress;
  }
  bool streams_end() { return streams_[0].done() && streams_[1].done(); }

  std::array<ncclComm_t, 2> comms{};
  std::promise<void> gate;
  std::array<test::HostCudaArray<int>, 2> sums{test::HostCudaArray<int>(1000, 1), test::HostCudaArray<int>(1000, 2)};

 private:
  std::array<test::HostCudaStream, 2> streams_;
};

}  // namespace

TEST_CASE("nccl on a GPU: a communicator that does not block is finalized in the background") {
  const test::WithHostCuda gpu;
  TwoUnblocked ranks;
  REQUIRE(ranks.finalize_without_waiting(0));
  ncclResult_t state = ncclSuccess;
  CHECK(ncclCommGetAsyncError(ranks.comms[0], &state) == ncclSuccess);
  CHECK(state == ncclInProgress);
  CHECK(ncclCommDestroy(ranks.comms[0]) == ncclInvalidArgument);
  REQUIRE(ranks.finalize_without_waiting(1));
  ranks.gate.set_value();
  for (const ncclComm_t comm : ranks.comms) CHECK(settled(comm) == ncclSuccess);
  for (auto& sum : ranks.sums) CHECK(sum.all(3));
  CHECK(ncclCommFinalize(ranks.comms[0]) == ncclInvalidArgument);
  for (const ncclComm_t comm : ranks.comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("nccl on a GPU: an abort ends a finalization in the background") {
  const test::WithHostCuda gpu;
  const test::KeptLog log;
  TwoUnblocked ranks;
  REQUIRE(ranks.finalize_without_waiting(0));
  CHECK(ncclCommAbort(ranks.comms[0]) == ncclSuccess);
  CHECK(ncclCommAbort(ranks.comms[1]) == ncclSuccess);
  CHECK_FALSE(log.has("has not ended yet"));
  ranks.gate.set_value();
  CHECK(ranks.streams_end());
}
