// Wrong calls of NCCL's interface: each is an error that says why, and harms nothing.
#include <array>
#include <cstdint>
#include <string_view>

#include "test/catch.h"
#include "test/plugin/nccl_ranks.h"

using namespace gyre::test;

namespace {

struct Alone {
  Alone() { REQUIRE(ncclCommInitRank(&comm, 1, new_id(), 0) == ncclSuccess); }
  ~Alone() { CHECK(ncclCommDestroy(comm) == ncclSuccess); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  ncclComm_t comm = nullptr;
};

bool last_says(std::string_view text) { return std::string_view(ncclGetLastError(nullptr)).find(text) != std::string_view::npos; }

}  // namespace

TEST_CASE("nccl: a handle that is none is an error everywhere") {
  Alone alone;
  ncclComm_t gone = nullptr, made = nullptr;
  REQUIRE(ncclCommInitRank(&gone, 1, new_id(), 0) == ncclSuccess);
  REQUIRE(ncclCommDestroy(gone) == ncclSuccess);
  int data = 0;
  ncclResult_t state = ncclSuccess;
  ncclRedOp_t op = ncclSum;
  for (ncclComm_t comm : {static_cast<ncclComm_t>(nullptr), gone}) {
    CHECK(ncclAllReduce(&data, &data, 1, ncclInt32, ncclSum, comm, nullptr) == ncclInvalidArgument);
    CHECK(ncclSend(&data, 1, ncclInt32, 0, comm, nullptr) == ncclInvalidArgument);
    CHECK(ncclCommCount(comm, &data) == ncclInvalidArgument);
    CHECK(ncclCommGetAsyncError(comm, &state) == ncclInvalidArgument);
    CHECK(ncclCommSplit(comm, 0, 0, &made, nullptr) == ncclInvalidArgument);
    CHECK(ncclRedOpCreatePreMulSum(&op, &data, ncclInt32, ncclScalarHostImmediate, comm) == ncclInvalidArgument);
  }
  CHECK(ncclCommFinalize(gone) == ncclInvalidArgument);
  CHECK(ncclCommDestroy(gone) == ncclInvalidArgument);
  CHECK(ncclCommAbort(gone) == ncclInvalidArgument);
  CHECK(ncclCommFinalize(nullptr) == ncclSuccess);
  CHECK(ncclCommDestroy(nullptr) == ncclSuccess);
  CHECK(ncclCommAbort(nullptr) == ncclSuccess);
}

TEST_CASE("nccl: wrong arguments of a collective are named") {
  Alone alone;
  int64_t data[4] = {};
  CHECK(ncclAllReduce(data, data, 1, ncclNumTypes, ncclSum, alone.comm, nullptr) == ncclInvalidArgument);
  CHECK(last_says("data type 12"));
  CHECK(ncclAllReduce(data, data, 1, ncclInt64, ncclNumOps, alone.comm, nullptr) == ncclInvalidArgument);
  CHECK(last_says("operation 5"));
  CHECK(ncclReduce(data, data, 1, ncclInt64, ncclSum, 1, alone.comm, nullptr) == ncclInvalidArgument);
  CHECK(last_says("root 1"));
  CHECK(ncclBroadcast(data, data, 1, ncclInt64, -1, alone.comm, nullptr) == ncclInvalidArgument);
  CHECK(ncclAllReduce(nullptr, data, 1, ncclInt64, ncclSum, alone.comm, nullptr) == ncclInvalidArgument);
  CHECK(ncclAllReduce(data, nullptr, 1, ncclInt64, ncclSum, alone.comm, nullptr) == ncclInvalidArgument);
  CHECK(ncclAllReduce(data, data + 1, 2, ncclInt64, ncclSum, alone.comm, nullptr) == ncclInvalidArgument);
  CHECK(last_says("overlap"));
  CHECK(ncclAllReduce(data, data, SIZE_MAX / 4, ncclInt64, ncclSum, alone.comm, nullptr) == ncclInvalidArgument);
  CHECK(ncclSend(data, 1, ncclInt64, 1, alone.comm, nullptr) == ncclInvalidArgument);
  CHECK(ncclRecv(nullptr, 1, ncclInt64, 0, alone.comm, nullptr) == ncclInvalidArgument);
  CHECK(last_says("ncclRecv"));
  CHECK(ncclAllReduce(nullptr, nullptr, 0, ncclInt64, ncclSum, alone.comm, nullptr) == ncclSuccess);
}

TEST_CASE("nccl: wrong arguments where communicators are made") {
  ncclComm_t comm = nullptr;
  const ncclUniqueId id = new_id();
  CHECK(ncclCommInitRank(nullptr, 1, id, 0) == ncclInvalidArgument);
  CHECK(ncclCommInitRank(&comm, 0, id, 0) == ncclInvalidArgument);
  CHECK(ncclCommInitRank(&comm, 2, id, 2) == ncclInvalidArgument);
  CHECK(ncclCommInitRank(&comm, 2, id, -1) == ncclInvalidArgument);
  CHECK(ncclCommInitAll(nullptr, 1, nullptr) == ncclInvalidArgument);
  CHECK(ncclCommInitAll(&comm, 0, nullptr) == ncclInvalidArgument);
  CHECK(ncclCommInitRankScalable(&comm, 1, 0, 0, nullptr, nullptr) == ncclInvalidArgument);
  Alone alone;
  int rank = 0;
  CHECK(ncclCommSplit(alone.comm, -2, 0, &comm, nullptr) == ncclInvalidArgument);
  CHECK(ncclCommSplit(alone.comm, 0, 0, nullptr, nullptr) == ncclInvalidArgument);
  CHECK(ncclCommShrink(alone.comm, &rank, 1, &comm, nullptr, 0) == ncclInvalidArgument);
  CHECK(ncclCommShrink(alone.comm, &rank, 1, &comm, nullptr, 7) == ncclInvalidArgument);
  CHECK(comm == nullptr);
}

TEST_CASE("nccl: after finalize there are no more calls") {
  Alone alone;
  int data = 0;
  CHECK(ncclCommFinalize(alone.comm) == ncclSuccess);
  CHECK(ncclCommFinalize(alone.comm) == ncclInvalidArgument);
  CHECK(ncclAllReduce(&data, &data, 1, ncclInt32, ncclSum, alone.comm, nullptr) == ncclInvalidArgument);
}

TEST_CASE("nccl: what gyre alone does not do says so") {
  Alone alone;
  uint64_t value = 0;
  CHECK(ncclCommSuspend(alone.comm, 1) == ncclInvalidUsage);
  CHECK(last_says("ncclCommSuspend"));
  CHECK(ncclCommMemStats(alone.comm, ncclStatGpuMemTotal, &value) == ncclInvalidUsage);
  CHECK(pncclCommResume(alone.comm) == ncclInvalidUsage);
  CHECK(ncclSignal(0, 0, 0, 0, alone.comm, nullptr) == ncclInvalidUsage);
}

TEST_CASE("nccl: memory is registered without a window, as by an NCCL that has none") {
  Alone alone;
  std::array<char, 64> memory{};
  void* const none = memory.data();
  auto* const wrong = static_cast<ncclWindow_t>(none);
  for (const int flags : {0, int{NCCL_WIN_COLL_SYMMETRIC}}) {
    ncclWindow_t window = wrong;
    CHECK(ncclCommWindowRegister(alone.comm, memory.data(), memory.size(), &window, flags) == ncclSuccess);
    CHECK(window == nullptr);
  }
  ncclWindow_t window = wrong;
  CHECK(ncclCommWindowRegister(nullptr, memory.data(), memory.size(), &window, 0) == ncclInvalidArgument);
  CHECK(ncclCommWindowRegister(alone.comm, nullptr, 0, &window, 0) == ncclSuccess);  // as NCCL, of a rank that has nothing to show
  CHECK(window == nullptr);
  CHECK(ncclCommWindowRegister(alone.comm, memory.data(), memory.size(), nullptr, 0) == ncclInvalidArgument);
  CHECK(ncclCommWindowDeregister(alone.comm, nullptr) == ncclSuccess);
  CHECK(ncclCommWindowDeregister(nullptr, wrong) == ncclInvalidArgument);
  CHECK(ncclCommWindowDeregister(alone.comm, wrong) == ncclInvalidArgument);
  CHECK(last_says("window"));
}

TEST_CASE("nccl: every result has words") {
  for (int result = 0; result <= 8; ++result) CHECK(std::string_view(ncclGetErrorString(static_cast<ncclResult_t>(result))).size() > 4);
  int version = 0;
  CHECK(pncclGetVersion(&version) == ncclSuccess);
  CHECK(version == 22809);
  CHECK(ncclGetVersion(nullptr) == ncclInvalidArgument);
}
