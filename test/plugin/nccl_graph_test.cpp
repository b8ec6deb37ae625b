// NCCL's interface by gyre alone in CUDA graphs.
#include <algorithm>

#include "test/becomes.h"
#include "test/catch.h"
#include "test/plugin/host_cuda.h"
#include "test/plugin/nccl_ranks.h"

using namespace gyre;
using test::HostCudaStream;
using test::run_nccl;
using test::WithHostCuda;
using namespace std::chrono_literals;

namespace {

constexpr size_t graph_elements = 3000;

class Numbers : public test::HostCudaArray<int> {
 public:
  explicit Numbers(int value) : HostCudaArray(graph_elements, value) {}
};

ncclResult_t sum_up(Numbers& numbers, ncclComm_t comm, cudaStream_t stream) {
  return ncclAllReduce(numbers.data(), numbers.data(), graph_elements, ncclInt32, ncclSum, comm, stream);
}

}  // namespace

TEST_CASE("nccl in a graph: a step of warm-up, a capture, replays, and calls between them") {
  const WithHostCuda gpu;
  CHECK(run_nccl(2, [](ncclComm_t comm, int) -> std::string {
          HostCudaStream stream;
          Numbers data(1), other(1);
          NCCL_OK(sum_up(data, comm, stream));
          stream.begin_capture();
          NCCL_OK(ncclGroupStart());
          NCCL_OK(sum_up(data, comm, stream));
          NCCL_OK(sum_up(other, comm, stream));
          NCCL_OK(ncclGroupEnd());
          NCCL_OK(ncclAllReduce(nullptr, nullptr, 0, ncclInt32, ncclSum, comm, stream));
          auto graph = stream.end_capture();
          for (int i = 0; i < 5; ++i) {
            stream.launch(graph);
            if (i % 2 == 0) NCCL_OK(sum_up(data, comm, stream));
          }
          if (!stream.done()) return "the stream does not end";
          ncclResult_t state = ncclInternalError;
          NCCL_OK(ncclCommGetAsyncError(comm, &state));
          graph.reset();
          return data.all(512) && other.all(32) && state == ncclSuccess ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("nccl in a graph: what can't be captured is an error that says so, and the communicator goes on") {
  const WithHostCuda gpu;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          HostCudaStream stream;
          Numbers data(1), scalar(3);
          std::vector<int> host(10, 1);
          ncclRedOp_t op{};
          NCCL_OK(ncclRedOpCreatePreMulSum(&op, scalar.data(), ncclInt32, ncclScalarDevice, comm));
          stream.begin_capture();
          NCCL_GIVES(ncclInvalidUsage, ncclSend(data.data(), 10, ncclInt32, 1 - rank, comm, stream));
          NCCL_GIVES(ncclInvalidUsage, ncclAllReduce(host.data(), host.data(), 10, ncclInt32, ncclSum, comm, stream));
          NCCL_GIVES(ncclInvalidUsage, ncclAllReduce(data.data(), data.data(), 10, ncclInt32, op, comm, stream));
          NCCL_OK(sum_up(data, comm, stream));
          const auto graph = stream.end_capture();
          NCCL_OK(ncclRedOpDestroy(op, comm));
          stream.launch(graph);
          return stream.done() && data.all(2) ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("nccl in a graph: who has a scalar in memory learns how else") {
  const WithHostCuda gpu;  // one rank, since the last error is the process's
  CHECK(run_nccl(1, [](ncclComm_t comm, int) -> std::string {
          HostCudaStream stream;
          Numbers data(1), scalar(3);
          ncclRedOp_t op{};
          NCCL_OK(ncclRedOpCreatePreMulSum(&op, scalar.data(), ncclInt32, ncclScalarDevice, comm));
          stream.begin_capture();
          NCCL_GIVES(ncclInvalidUsage, ncclAllReduce(data.data(), data.data(), 10, ncclInt32, op, comm, stream));
          stream.end_capture();
          return std::string(ncclGetLastError(comm)).find("ncclScalarHostImmediate") == std::string::npos ? ncclGetLastError(comm) : "";
        }) == "");
}

TEST_CASE("nccl in a graph: a communicator is finalized and destroyed while a graph runs, has not begun, or is between two calls") {
  const WithHostCuda gpu;
  const ncclUniqueId id = test::new_id();
  std::array<std::string, 2> words;
  const auto rank_main = [&](int rank) -> std::string {
    ncclComm_t comm = nullptr;
    NCCL_OK(ncclCommInitRank(&comm, 2, id, rank));
    HostCudaStream stream;
    Numbers data(1);
    stream.begin_capture();
    for (int i = 0; i < 2; ++i) {
      stream.add([] { std::this_thread::sleep_for(200ms); });
      NCCL_OK(sum_up(data, comm, stream));
    }
    const auto graph = stream.end_capture();
    stream.launch(graph);
    if (rank == 0) NCCL_OK(ncclCommFinalize(comm));
    NCCL_OK(ncclCommDestroy(comm));
    return stream.done() && data.all(4) ? "" : "a wrong sum";
  };
  std::thread other([&] { words[1] = rank_main(1); });
  words[0] = rank_main(0);
  other.join();
  CHECK(words[0] == "");
  CHECK(words[1] == "");
}

TEST_CASE("nccl in a graph: an abort frees the stream within a second, and what is launched later") {
  const WithHostCuda gpu;
  const ncclUniqueId id = test::new_id();
  std::atomic<int> captured{0};
  std::atomic<bool> over{false};
  std::string other_word;
  const auto rank_main = [&](int rank) -> std::string {
    ncclComm_t comm = nullptr;
    NCCL_OK(ncclCommInitRank(&comm, 2, id, rank));
    HostCudaStream stream;
    Numbers data(1);
    stream.begin_capture();
    NCCL_OK(sum_up(data, comm, stream));
    const auto graph = stream.end_capture();
    ++captured;
    if (!test::becomes([&] { return captured == 2; })) return "the other has captured nothing";
    if (rank == 0) {
      stream.launch(graph);
      std::this_thread::sleep_for(50ms);
    } else {
      while (!over) std::this_thread::yield();
    }
    const auto begin = std::chrono::steady_clock::now();
    NCCL_OK(ncclCommAbort(comm));
    over = true;
    stream.launch(graph);
    return stream.done() && std::chrono::steady_clock::now() - begin < 2s ? "" : "the stream is not free";
  };
  std::thread other([&] { other_word = rank_main(1); });
  CHECK(rank_main(0) == "");
  other.join();
  CHECK(other_word == "");
}
