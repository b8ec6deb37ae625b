// Operations that a program makes, by gyre alone.
#include <fmt/format.h>

#include "test/catch.h"
#include "test/plugin/nccl_ranks.h"

using namespace gyre::test;

TEST_CASE("nccl: a pre-multiplied sum takes its scalar when it is made, or when it runs") {
  CHECK(run_nccl(3, [](ncclComm_t comm, int rank) -> std::string {
          double scalar = rank + 1, in = 2, out = 0;
          ncclRedOp_t at_once = ncclSum, later = ncclSum;
          NCCL_OK(ncclRedOpCreatePreMulSum(&at_once, &scalar, ncclFloat64, ncclScalarHostImmediate, comm));
          NCCL_OK(ncclRedOpCreatePreMulSum(&later, &scalar, ncclFloat64, ncclScalarDevice, comm));
          if (at_once < ncclNumOps || later < ncclNumOps || at_once == later) return fmt::format("{} and {}", int{at_once}, int{later});
          scalar = 10;
          NCCL_OK(ncclAllReduce(&in, &out, 1, ncclFloat64, at_once, comm, nullptr));
          if (out != 12) return fmt::format("with the first scalars: {}", out);
          NCCL_OK(ncclAllReduce(&in, &out, 1, ncclFloat64, later, comm, nullptr));
          if (out != 60) return fmt::format("with the last scalars: {}", out);
          NCCL_OK(ncclGroupStart());
          NCCL_OK(ncclAllReduce(&in, &out, 1, ncclFloat64, at_once, comm, nullptr));
          NCCL_OK(ncclRedOpDestroy(at_once, comm));
          NCCL_OK(ncclGroupEnd());
          return out == 12 ? "" : fmt::format("destroyed in its group: {}", out);
        }) == "");
}

TEST_CASE("nccl: an operation is of one communicator and one type") {
  ncclComm_t one = nullptr, other = nullptr;
  REQUIRE(ncclCommInitRank(&one, 1, new_id(), 0) == ncclSuccess);
  REQUIRE(ncclCommInitRank(&other, 1, new_id(), 0) == ncclSuccess);
  float data = 3, scalar = 2;
  ncclRedOp_t op = ncclSum;
  CHECK(ncclRedOpCreatePreMulSum(nullptr, &scalar, ncclFloat32, ncclScalarHostImmediate, one) == ncclInvalidArgument);
  CHECK(ncclRedOpCreatePreMulSum(&op, nullptr, ncclFloat32, ncclScalarHostImmediate, one) == ncclInvalidArgument);
  CHECK(ncclRedOpCreatePreMulSum(&op, &scalar, ncclNumTypes, ncclScalarHostImmediate, one) == ncclInvalidArgument);
  CHECK(op == ncclSum);
  REQUIRE(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, one) == ncclSuccess);
  CHECK(ncclAllReduce(&data, &data, 1, ncclFloat32, op, one, nullptr) == ncclSuccess);
  CHECK(data == 6);  // one rank multiplies, too
  CHECK(ncclAllReduce(&data, &data, 1, ncclFloat32, op, other, nullptr) == ncclInvalidArgument);
  CHECK(ncclAllReduce(&data, &data, 1, ncclInt32, op, one, nullptr) == ncclInvalidArgument);
  CHECK(ncclRedOpDestroy(op, other) == ncclInvalidArgument);
  CHECK(ncclRedOpDestroy(ncclSum, one) == ncclInvalidArgument);
  CHECK(ncclRedOpDestroy(op, one) == ncclSuccess);
  CHECK(ncclRedOpDestroy(op, one) == ncclInvalidArgument);
  CHECK(ncclAllReduce(&data, &data, 1, ncclFloat32, op, one, nullptr) == ncclInvalidArgument);
  CHECK(data == 6);
  CHECK(ncclCommDestroy(one) == ncclSuccess);
  CHECK(ncclCommDestroy(other) == ncclSuccess);
}
