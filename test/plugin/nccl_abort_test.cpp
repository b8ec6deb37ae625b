// Ends of communicators that nobody wished for, by gyre alone.
#include <atomic>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>

#include "plugin/nccl/comm.h"
#include "test/becomes.h"
#include "test/catch.h"
#include "test/plugin/nccl_ranks.h"

using namespace gyre::test;
using Clock = std::chrono::steady_clock;

TEST_CASE("nccl: an abort by another thread ends what runs, within a second") {
  std::promise<void> over;
  CHECK(run_nccl(2, [&](ncclComm_t comm, int rank) -> std::string {
          if (rank == 1) return over.get_future().wait(), "";  // calls nothing
          Clock::time_point begun;
          std::thread other([&] {
            std::this_thread::sleep_for(
                std::chrono::milliseconds(50));  // as a rule the call waits by then; what is tested holds in any case
            begun = Clock::now();
            ncclCommAbort(comm);
          });
          int one = 1;
          const ncclResult_t result = ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, comm, nullptr);
          const auto returned = Clock::now();
          other.join();
          over.set_value();
          if (result == ncclSuccess || returned - begun > std::chrono::seconds(1)) return "result " + std::to_string(result);
          NCCL_GIVES(ncclInvalidArgument, ncclCommAbort(comm));
          return "aborted";
        }) == "rank 0: aborted");
}

TEST_CASE("nccl: who asks for an error waits for no abort that waits for its GPU") {
  using namespace gyre;
  struct SlowGpu final : plugin::nccl::OnGpu {
    Status enqueue(const engine::Call& /*call*/, const void* /*input*/, void* /*output*/, cudaStream_t /*stream*/) override { return {}; }
    Status why_not(const engine::Call& /*call*/) override { return {}; }
    Status status() override { return {}; }
    const Error* failure() const override { return nullptr; }
    Status finish(const std::function<Status()>& /*meanwhile*/) override { return {}; }
    bool idle() override { return true; }
    bool in_graphs() override { return false; }
    void abort(std::string_view /*why*/) override {
      reached.set_value();
      gate.get_future().wait();
    }
    std::promise<void> reached, gate;
  };
  plugin::nccl::Comm comm(0, 1, 0, {});
  auto gpu = std::make_unique<SlowGpu>();
  SlowGpu& slow = *gpu;
  auto alone = engine::Communicator::create(transport::Rendezvous{}, configured({}));
  REQUIRE(alone);
  REQUIRE(comm.made(*std::move(alone), std::move(gpu)));
  std::thread interrupting([&] { comm.interrupt(); });
  slow.reached.get_future().wait();
  auto asked = std::async(std::launch::async, [&] { return std::pair(comm.state(), comm.untold().has_value()); });
  CHECK(asked.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  slow.gate.set_value();
  interrupting.join();
  CHECK(asked.get() == std::pair(ncclRemoteError, true));
  CHECK_FALSE(comm.untold());
}

TEST_CASE("nccl: after an abort nothing touches the buffers of a non-blocking call") {
  const ncclUniqueId id = new_id();
  std::atomic<bool> done{false};
  std::thread other([&] {
    ncclComm_t comm = nullptr;
    if (ncclCommInitRank(&comm, 2, id, 1) != ncclSuccess) return;
    while (!done) std::this_thread::yield();
    ncclCommDestroy(comm);
  });
  ncclConfig_t config = nccl_config();
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  auto data = std::make_unique<std::vector<int>>(1 << 20, 1);
  CHECK(ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclInProgress);
  CHECK(settled(comm) == ncclSuccess);
  CHECK(ncclAllReduce(data->data(), data->data(), data->size(), ncclInt32, ncclSum, comm, nullptr) == ncclInProgress);
  CHECK(ncclCommDestroy(comm) == ncclInvalidArgument);
  CHECK(ncclCommAbort(comm) == ncclSuccess);
  data.reset();  // the address sanitizer would say who still reads it
  done = true;
  other.join();
}

TEST_CASE("nccl: where one rank revokes, the others learn of it without calling, and all but one go on") {
  CHECK(run_nccl(3, [](ncclComm_t comm, int rank) -> std::string {
          if (rank == 1) {
            NCCL_OK(ncclCommRevoke(comm, 0));
          }
          ncclResult_t state = ncclSuccess;
          for (const auto end = Clock::now() + std::chrono::seconds(20); state == ncclSuccess && Clock::now() < end;)
            NCCL_OK(ncclCommGetAsyncError(comm, &state));
          if (state != ncclRemoteError) return "the state is " + std::to_string(state);
          int one = 1, count = 0;
          NCCL_GIVES(ncclRemoteError, ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, comm, nullptr));
          NCCL_GIVES(ncclRemoteError, ncclCommCount(comm, &count));
          if (rank == 0) return {};
          ncclComm_t rest = nullptr;
          int without = 0, sum = 0;
          NCCL_OK(ncclCommShrink(comm, &without, 1, &rest, nullptr, rank == 1 ? NCCL_SHRINK_DEFAULT : NCCL_SHRINK_ABORT));
          NCCL_OK(ncclAllReduce(&rank, &sum, 1, ncclInt32, ncclSum, rest, nullptr));
          NCCL_OK(ncclCommDestroy(rest));
          return sum == 3 ? "" : "sum " + std::to_string(sum);
        }) == "");
}

TEST_CASE("nccl: the ranks that are left go on without the others") {
  CHECK(run_nccl(4, [](ncclComm_t comm, int rank) -> std::string {
          std::array<int, 2> without{3, 1};
          ncclComm_t rest = nullptr;
          int value = rank, sum = 0, own = -1;
          if (rank % 2 == 0) {
            NCCL_OK(ncclCommShrink(comm, without.data(), 2, &rest, nullptr, NCCL_SHRINK_DEFAULT));
            NCCL_OK(ncclAllReduce(&value, &sum, 1, ncclInt32, ncclSum, rest, nullptr));
            NCCL_OK(ncclCommUserRank(rest, &own));
            NCCL_OK(ncclCommDestroy(rest));
            if (sum != 2 || own != rank / 2) return "sum " + std::to_string(sum) + ", rank " + std::to_string(own);
          }
          NCCL_OK(ncclAllReduce(&value, &sum, 1, ncclInt32, ncclSum, comm, nullptr));  // all of them still work together
          return sum == 6 ? "" : "sum " + std::to_string(sum);
        }) == "");
}

TEST_CASE("nccl: a communicator is aborted while it is made, by either rank") {
  const int rank = GENERATE(0, 1);
  ncclConfig_t config = nccl_config();
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  REQUIRE(ncclCommInitRankConfig(&comm, 2, new_id(), rank, &config) == ncclInProgress);
  CHECK(ncclCommDestroy(comm) == ncclInvalidArgument);
  CHECK(ncclCommRevoke(comm, 0) == ncclInvalidArgument);
  const auto begun = Clock::now();
  CHECK(ncclCommAbort(comm) == ncclSuccess);
  CHECK(Clock::now() - begun < std::chrono::seconds(1));
  ncclResult_t state = ncclSuccess;
  CHECK(ncclCommGetAsyncError(comm, &state) == ncclInvalidArgument);
}

TEST_CASE("nccl: an idle communicator that is aborted has only left") {
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          int data = rank;
          NCCL_OK(ncclBroadcast(&data, &data, 1, ncclInt32, 0, comm, nullptr));
          ncclResult_t state = ncclSuccess;
          if (rank == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            NCCL_OK(ncclCommGetAsyncError(comm, &state));
            return state == ncclSuccess ? "" : "the other's abort is an error";
          }
          NCCL_OK(ncclCommAbort(comm));
          return "gone";
        }) == "rank 0: gone");
}

TEST_CASE("nccl: no descriptor is left, whatever became of a communicator and its id") {
  const auto descriptors = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto once = [] {
    ncclComm_t comm = nullptr;
    std::array<ncclUniqueId, 2> ids{new_id(), new_id()};
    CHECK(ncclCommInitRankScalable(&comm, 2, 2, 2, ids.data(), nullptr) == ncclInvalidArgument);
    CHECK(ncclCommInitRank(&comm, 1, ids[0], 0) == ncclSuccess);
    CHECK(ncclCommDestroy(comm) == ncclSuccess);
  };
  once();
  const auto before = descriptors();
  for (int i = 0; i < 20; ++i) once();
  CHECK(gyre::test::becomes([&] { return descriptors() <= before; }));  // a bell goes a moment after its id is used
}
