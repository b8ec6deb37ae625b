// NCCL's interface by gyre alone on GPU memory, where the host has no memory left for sends and receives.
#include "engine/batch.h"
#include "test/catch.h"
#include "test/plugin/host_cuda.h"
#include "test/plugin/nccl_ranks.h"
#include "test/plugin/scarce_memory.h"

using namespace gyre;

namespace {

constexpr size_t sent = 37;
// Of lists as long as they must be: of all transfers, in the call, and of the messages to others, in the thread.
constexpr size_t bytes_in_call = (sent + 2) * sizeof(engine::Transfer), bytes_in_thread = sent * 32;

/// To rank 1, and one to itself.
ncclResult_t send_many(ncclComm_t comm, int* data, cudaStream_t stream) {
  CHECK(ncclGroupStart() == ncclSuccess);
  for (size_t i = 0; i < sent; ++i) CHECK(ncclSend(data, 1, ncclInt32, 1, comm, stream) == ncclSuccess);
  CHECK(ncclSend(data, 1, ncclInt32, 0, comm, stream) == ncclSuccess);
  CHECK(ncclRecv(data + 1, 1, ncclInt32, 0, comm, stream) == ncclSuccess);
  return ncclGroupEnd();
}

}  // namespace

TEST_CASE("nccl on a GPU: sends that there is no memory for are an error of both ends") {
  const test::WithHostCuda gpu;
  const bool in_call = GENERATE(true, false);
  test::HostCudaArray<int> out(2, 1), in(1, 0);
  std::array<test::HostCudaStream, 2> streams;
  std::array<ncclComm_t, 2> comms{};
  REQUIRE(ncclCommInitAll(comms.data(), 2, nullptr) == ncclSuccess);
  CHECK(ncclRecv(in.data(), 1, ncclInt32, 0, comms[1], streams[1]) == ncclSuccess);
  test::refused_bytes = in_call ? bytes_in_call : bytes_in_thread;
  const ncclResult_t given = send_many(comms[0], out.data(), streams[0]);
  const ncclResult_t state = test::first_error(comms[0]);
  test::refused_bytes = 0;
  CHECK(given == (in_call ? ncclSystemError : ncclSuccess));
  CHECK(state == ncclSystemError);
  CHECK(test::first_error(comms[1]) == ncclSystemError);
  for (const ncclComm_t comm : comms) CHECK(ncclCommAbort(comm) == ncclSuccess);
  for (test::HostCudaStream& stream : streams) CHECK(stream.done());
}
