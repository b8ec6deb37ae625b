// NCCL's interface by gyre alone on GPU memory: what calls and groups wait for of several streams.
#include <chrono>
#include <future>

#include "test/catch.h"
#include "test/plugin/host_cuda.h"
#include "test/plugin/nccl_ranks.h"

using namespace gyre;
using test::HostCudaStream;
using test::run_nccl;
using test::WithHostCuda;
using namespace std::chrono_literals;

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
