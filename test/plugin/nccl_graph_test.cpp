// NCCL's interface by gyre alone on streams that are captured for CUDA graphs.
#include <algorithm>

#include "test/catch.h"
#include "test/plugin/host_cuda.h"
#include "test/plugin/nccl_ranks.h"

using namespace gyre;
using test::HostCudaMemory;
using test::HostCudaStream;
using test::run_nccl;

namespace {

class WithGraphGpu {
 public:
  WithGraphGpu() { test::have_host_cuda(true); }
  ~WithGraphGpu() { test::have_host_cuda(false); }
  WithGraphGpu(const WithGraphGpu&) = delete;
  WithGraphGpu& operator=(const WithGraphGpu&) = delete;
};

constexpr size_t graph_elements = 3000;

class Numbers {
 public:
  explicit Numbers(int value) : memory_(graph_elements * sizeof(int)) { std::fill_n(data(), graph_elements, value); }
  int* data() { return memory_.as<int>(); }
  bool all(int value) {
    return std::all_of(data(), data() + graph_elements, [=](int v) { return v == value; });
  }

 private:
  HostCudaMemory memory_;
};

ncclResult_t sum_up(Numbers& numbers, ncclComm_t comm, cudaStream_t stream) {
  return ncclAllReduce(numbers.data(), numbers.data(), graph_elements, ncclInt32, ncclSum, comm, stream);
}

}  // namespace

TEST_CASE("nccl in a graph: what is captured is refused, whatever it is, and the communicator goes on") {
  const WithGraphGpu gpu;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          HostCudaStream stream;
          Numbers data(1);
          stream.begin_capture();
          NCCL_GIVES(ncclInvalidUsage, ncclSend(data.data(), 10, ncclInt32, 1 - rank, comm, stream));
          NCCL_GIVES(ncclInvalidUsage, sum_up(data, comm, stream));
          stream.end_capture();
          NCCL_OK(sum_up(data, comm, stream));
          return stream.done() && data.all(2) ? "" : "a wrong sum";
        }) == "");
}
