// NCCL's interface by gyre alone on GPU memory: what calls and groups wait for of several streams.
#include <chrono>
#include <future>
#include <thread>

#include "plugin/nccl/cuda_driver.h"
#include "test/catch.h"
#include "test/plugin/host_cuda.h"
#include "test/plugin/nccl_ranks.h"

using namespace gyre;
using test::HostCudaStream;
using test::Late;
using test::run_nccl;
using test::WithHostCuda;
using namespace std::chrono_literals;

namespace {

constexpr size_t streamed_elements = 3000;

struct StreamedInts : test::HostCudaArray<int> {
  StreamedInts() : HostCudaArray(streamed_elements, 1) {}
};

ncclResult_t streamed_sum(StreamedInts& data, ncclComm_t comm, cudaStream_t stream) {
  return ncclAllReduce(data.data(), data.data(), streamed_elements, ncclInt32, ncclSum, comm, stream);
}

}  // namespace

TEST_CASE("nccl on a GPU: a call that has nothing to do waits for no stream") {
  const WithHostCuda gpu;
  CHECK(run_nccl(1, [](ncclComm_t comm, int) -> std::string {
          HostCudaStream stream;
          std::promise<void> gate;
          stream.add([opened = gate.get_future().share()] { opened.wait(); });
          auto called = std::async(std::launch::async, [&, behind = cudaStream_t(stream)] {
            return ncclAllReduce(nullptr, nullptr, 0, ncclInt32, ncclSum, comm, behind);
          });
          const bool returned = called.wait_for(20s) == std::future_status::ready;
          gate.set_value();
          NCCL_OK(called.get());
          return returned && stream.done() ? "" : "it waits";
        }) == "");
}

TEST_CASE("nccl on a GPU: a group begins after what each of its streams was given") {
  const WithHostCuda gpu;
  Late late;
  CHECK(run_nccl(2, [&](ncclComm_t comm, int rank) -> std::string {
          bool in_order = true;
          StreamedInts first_data, second_data;
          HostCudaStream first, second;
          if (rank == 0) {
            second.add([&] { late.wait(); });
            NCCL_OK(ncclGroupStart());
            NCCL_OK(streamed_sum(first_data, comm, first));
            NCCL_OK(streamed_sum(second_data, comm, second));
            NCCL_OK(ncclGroupEnd());
          } else {
            NCCL_OK(streamed_sum(first_data, comm, first));
            first.add([&] {
              in_order = late.done;
              late.overtaken = true;
            });
            NCCL_OK(streamed_sum(second_data, comm, first));
          }
          if (!first.done() || !second.done()) return "the streams do not end";
          return in_order && first_data.all(2) && second_data.all(2) ? "" : "the first sum did not wait for the other's second stream";
        }) == "");
}

TEST_CASE("nccl on a GPU: a group reads a scalar after what each of its streams was given") {
  const WithHostCuda gpu;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          StreamedInts scaled, summed;
          test::HostCudaArray<int> scalar(1, 0);
          HostCudaStream first, second;
          second.add([&] {
            std::this_thread::sleep_for(50ms);  // who does not wait for it is sooner
            *scalar.data() = rank + 2;
          });
          ncclRedOp_t op{};
          NCCL_OK(ncclRedOpCreatePreMulSum(&op, scalar.data(), ncclInt32, ncclScalarDevice, comm));
          NCCL_OK(ncclGroupStart());
          NCCL_OK(ncclAllReduce(scaled.data(), scaled.data(), streamed_elements, ncclInt32, op, comm, first));
          NCCL_OK(streamed_sum(summed, comm, second));
          NCCL_OK(ncclGroupEnd());
          NCCL_OK(ncclRedOpDestroy(op, comm));
          if (!first.done() || !second.done()) return "the streams do not end";
          return scaled.all(5) && summed.all(2) ? "" : "a scalar that was not there yet";
        }) == "");
}

TEST_CASE("nccl on a GPU: each stream of a group goes on after all of it") {
  const WithHostCuda gpu;
  Late late;
  CHECK(run_nccl(2, [&](ncclComm_t comm, int rank) -> std::string {
          bool in_order = true;
          StreamedInts first_data, second_data;
          HostCudaStream first, second;
          if (rank == 0) {
            NCCL_OK(ncclGroupStart());
            NCCL_OK(streamed_sum(first_data, comm, first));
            NCCL_OK(streamed_sum(second_data, comm, second));
            NCCL_OK(ncclGroupEnd());
            first.add([&] {
              in_order = late.done;
              late.overtaken = true;
            });
          } else {
            NCCL_OK(streamed_sum(first_data, comm, first));
            first.add([&] { late.wait(); });
            NCCL_OK(streamed_sum(second_data, comm, first));
          }
          if (!first.done() || !second.done()) return "the streams do not end";
          return in_order && first_data.all(2) && second_data.all(2) ? "" : "the first stream did not wait for all of the group";
        }) == "");
}

TEST_CASE("nccl on a GPU: the stream of a receive goes on after the collectives of its group") {
  const WithHostCuda gpu;
  Late late;
  CHECK(run_nccl(2, [&](ncclComm_t comm, int rank) -> std::string {
          bool in_order = true;
          StreamedInts sum, carried;
          HostCudaStream first, second;
          if (rank == 0) {
            NCCL_OK(ncclGroupStart());
            NCCL_OK(streamed_sum(sum, comm, first));
            NCCL_OK(ncclRecv(carried.data(), streamed_elements, ncclInt32, 1, comm, second));
            NCCL_OK(ncclGroupEnd());
            second.add([&] {
              in_order = late.done;
              late.overtaken = true;
            });
          } else {
            NCCL_OK(ncclSend(carried.data(), streamed_elements, ncclInt32, 0, comm, second));
            first.add([&] { late.wait(); });
            NCCL_OK(streamed_sum(sum, comm, first));
          }
          if (!first.done() || !second.done()) return "the streams do not end";
          return in_order && sum.all(2) && carried.all(1) ? "" : "the second stream did not wait for the first's sum";
        }) == "");
}

// A stream of the calling thread's, and of nobody else's by the same handle.
TEST_CASE("nccl on a GPU: a communicator that does not block keeps the order of the legacy and of the per-thread stream") {
  const WithHostCuda gpu;
  const cudaStream_t special = GENERATE(plugin::nccl::cuda::legacy, plugin::nccl::cuda::per_thread);
  const ncclUniqueId id = test::new_id();
  test::Words words(2);
  const auto rank_main = [&](int rank) -> std::string {
    ncclComm_t comm = nullptr;
    ncclConfig_t config = test::nccl_config();
    config.blocking = 0;
    if (ncclCommInitRankConfig(&comm, 2, id, rank, &config) != ncclInProgress || test::settled(comm) != ncclSuccess) return "init";
    StreamedInts sum, in, out;
    bool summed = false;
    HostCudaStream ordinary;
    const cudaStream_t stream = rank == 0 ? special : ordinary;  // ranks of a process that share the legacy one wait behind each other
    simt::HostStream& own = simt::HostStream::of(stream);
    own.add([&] {
      std::this_thread::sleep_for(50ms);  // who does not wait for it is sooner
      std::fill_n(sum.data(), streamed_elements, rank + 2);
      std::fill_n(out.data(), streamed_elements, rank + 2);
    });
    const auto given = [&](ncclResult_t result) {
      return result == ncclSuccess || (result == ncclInProgress && test::settled(comm) == ncclSuccess);
    };
    if (!given(streamed_sum(sum, comm, stream))) return "a sum";
    own.add([&] { summed = sum.all(5); });
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclSend(out.data(), streamed_elements, ncclInt32, 1 - rank, comm, stream));
    NCCL_OK(ncclRecv(in.data(), streamed_elements, ncclInt32, 1 - rank, comm, stream));
    if (!given(ncclGroupEnd())) return "a group";
    if (!own.done_within(20s)) return "the stream does not end";
    const bool right = summed && in.all(3 - rank);
    return ncclCommDestroy(comm) == ncclSuccess && right ? "" : "out of order";
  };
  std::thread other([&] { words[1] = rank_main(1); });
  words[0] = rank_main(0);
  other.join();
  CHECK(test::first_wrong(words) == "");
}
