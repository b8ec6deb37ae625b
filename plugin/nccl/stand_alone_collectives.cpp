// NCCL's collectives, sends and receives, and groups of them, by gyre alone.
#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "plugin/nccl/config.h"
#include "plugin/nccl/cuda_driver.h"
#include "plugin/nccl/errors.h"
#include "plugin/nccl/group.h"
#include "plugin/nccl/table.h"

namespace gyre::plugin::nccl {
namespace {

Result<DataType> type_of(ncclDataType_t type) {
  if (static_cast<unsigned>(type) < data_type_count) return static_cast<DataType>(type);
  return Error{Code::invalid_argument, fmt::format("there is no data type {}", static_cast<int>(type))};
}

/// Where the memory of a call lies, null where it has none: all of it is reached by the GPU, or none. What is pinned memory of the host is
/// the GPU's here, so that ranks need not be alike.
Result<bool> reached_by_gpu(const Comm& comm, const void* input, const void* output) {
  for (const void* memory : {input, output}) {
    if (comm.on_gpu() == nullptr && cuda::on_gpu(memory))
      return Error{Code::invalid_usage, fmt::format("{} is a GPU's memory, and not all ranks have a GPU that gyre can use", memory)};
  }
  if (comm.on_gpu() == nullptr || (input == nullptr && output == nullptr)) return false;
  const bool reached = cuda::reaches(input != nullptr ? input : output);
  if (input != nullptr && output != nullptr && cuda::reaches(output) != reached)
    return Error{Code::invalid_usage, fmt::format("the GPU reaches only one of {} and {}", input, output)};
  return reached;
}

/// A communicator that takes calls.
Result<Shared> open_comm(ncclComm_t handle) {
  auto comm = GYRE_TRY(find_healthy(handle));
  if (comm->finalized) return Error{Code::invalid_argument, "the communicator was finalized"};
  return comm;
}

/// Sets the call's operation, which may be one of the program's own.
Status choose(Operation& operation, ncclRedOp_t op) {
  engine::Call& call = *operation.call;
  if (static_cast<unsigned>(op) < reduce_op_count) {
    call.op = static_cast<ReduceOp>(op);
    return {};
  }
  const auto found = operation.comm->premul_sums.find(op);
  if (found == operation.comm->premul_sums.end())
    return Error{Code::invalid_argument, fmt::format("there is no operation {} on this communicator", static_cast<int>(op))};
  const PremulSum& sum = found->second;
  if (sum.type != call.type)
    return Error{Code::invalid_argument,
                 fmt::format("operation {} was made for {}, not for {}", static_cast<int>(op), name(sum.type), name(call.type))};
  call.op = ReduceOp::premul_sum;
  call.scalar = sum.scalar;
  operation.scalar_at = sum.at;
  return {};
}

struct Arguments {
  const void* input;
  void* output;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op = ncclSum;
  int root = 0;
};

Result<ncclResult_t> submit_collective(const char* name, Collective collective, const Arguments& given, ncclComm_t handle,
                                       cudaStream_t stream) {
  const Shared owner = GYRE_TRY(open_comm(handle));
  const DataType type = GYRE_TRY(type_of(given.type));
  Operation operation{owner,   name,  engine::Call{collective, given.count, type, {}, given.root, 0}, {}, given.input, given.output,
                      nullptr, stream};
  if (reduces(collective)) GYRE_TRY(choose(operation, given.op));
  const Comm& comm = *owner;
  const engine::Call& call = *operation.call;
  if (auto wrong = engine::refuse(call, comm.size)) return *std::move(wrong);
  const engine::Extent extent = engine::extent(call, comm.rank, comm.size);
  if (auto wrong = engine::refuse(call, comm.rank, extent, {given.input, given.output, call.scalar})) return *std::move(wrong);
  operation.on_gpu =
      GYRE_TRY(reached_by_gpu(comm, extent.input_bytes > 0 ? given.input : nullptr, extent.output_bytes > 0 ? given.output : nullptr));
  if (operation.on_gpu) operation.context = cuda::context();
  if (!operation.on_gpu && cuda::on_gpu(operation.scalar_at))
    return Error{Code::invalid_usage, fmt::format("the scalar at {} is in a GPU's memory, and the buffers are not", operation.scalar_at)};
  return submit(std::move(operation));
}

ncclResult_t collective(const char* name, Collective collective, const Arguments& given, ncclComm_t comm, cudaStream_t stream,
                        const ncclCollConfig_t* config = nullptr) noexcept {
  return grouped(name, [&]() -> Result<ncclResult_t> {
    GYRE_TRY(can_do(config));
    return submit_collective(name, collective, given, comm, stream);
  });
}

ncclResult_t transfer(const char* name, engine::Transfer::Kind kind, void* data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t handle, cudaStream_t stream) noexcept {
  return grouped(name, [&]() -> Result<ncclResult_t> {
    const Shared comm = GYRE_TRY(open_comm(handle));
    const DataType element = GYRE_TRY(type_of(type));
    if (peer < 0 || peer >= comm->size)
      return Error{Code::invalid_argument, fmt::format("there is no rank {}, there are {}", peer, comm->size)};
    if (count > 0 && data == nullptr) return Error{Code::invalid_argument, fmt::format("{} elements at NULL", count)};
    Operation operation{comm, name, {}, {kind, peer, data, count, element}, nullptr, nullptr, nullptr, stream};
    operation.on_gpu = count > 0 && (comm->on_gpu() != nullptr ? cuda::reaches(data) : cuda::on_gpu(data));
    if (operation.on_gpu || comm->on_gpu() != nullptr) operation.context = cuda::context();
    return submit(std::move(operation));
  });
}

}  // namespace

namespace stand_alone {

ncclResult_t ncclAllReduce(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) noexcept {
  return collective("ncclAllReduce", Collective::all_reduce, {input, output, count, type, op}, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) noexcept {
  return collective("ncclReduceScatter", Collective::reduce_scatter, {input, output, count, type, op}, comm, stream);
}
ncclResult_t ncclReduce(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                        cudaStream_t stream) noexcept {
  return collective("ncclReduce", Collective::reduce, {input, output, count, type, op, root}, comm, stream);
}
ncclResult_t ncclBroadcast(const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) noexcept {
  return collective("ncclBroadcast", Collective::broadcast, {input, output, count, type, ncclSum, root}, comm, stream);
}
ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) noexcept {
  return collective("ncclBcast", Collective::broadcast, {buffer, buffer, count, type, ncclSum, root}, comm, stream);
}
ncclResult_t ncclAllGather(const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) noexcept {
  return collective("ncclAllGather", Collective::all_gather, {input, output, count, type}, comm, stream);
}
ncclResult_t ncclAlltoAll(const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) noexcept {
  return collective("ncclAlltoAll", Collective::all_to_all, {input, output, count, type}, comm, stream);
}
ncclResult_t ncclGather(const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream) noexcept {
  return collective("ncclGather", Collective::gather, {input, output, count, type, ncclSum, root}, comm, stream);
}
ncclResult_t ncclScatter(const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream) noexcept {
  return collective("ncclScatter", Collective::scatter, {input, output, count, type, ncclSum, root}, comm, stream);
}
ncclResult_t ncclAllReduceConfig(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                 cudaStream_t stream, const ncclCollConfig_t* config) noexcept {
  return collective("ncclAllReduceConfig", Collective::all_reduce, {input, output, count, type, op}, comm, stream, config);
}
ncclResult_t ncclReduceScatterConfig(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                     cudaStream_t stream, const ncclCollConfig_t* config) noexcept {
  return collective("ncclReduceScatterConfig", Collective::reduce_scatter, {input, output, count, type, op}, comm, stream, config);
}
ncclResult_t ncclReduceConfig(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                              cudaStream_t stream, const ncclCollConfig_t* config) noexcept {
  return collective("ncclReduceConfig", Collective::reduce, {input, output, count, type, op, root}, comm, stream, config);
}
ncclResult_t ncclBroadcastConfig(const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                                 cudaStream_t stream, const ncclCollConfig_t* config) noexcept {
  return collective("ncclBroadcastConfig", Collective::broadcast, {input, output, count, type, ncclSum, root}, comm, stream, config);
}
ncclResult_t ncclAllGatherConfig(const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,
                                 const ncclCollConfig_t* config) noexcept {
  return collective("ncclAllGatherConfig", Collective::all_gather, {input, output, count, type}, comm, stream, config);
}
ncclResult_t ncclAlltoAllConfig(const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,
                                const ncclCollConfig_t* config) noexcept {
  return collective("ncclAlltoAllConfig", Collective::all_to_all, {input, output, count, type}, comm, stream, config);
}
ncclResult_t ncclGatherConfig(const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                              cudaStream_t stream, const ncclCollConfig_t* config) noexcept {
  return collective("ncclGatherConfig", Collective::gather, {input, output, count, type, ncclSum, root}, comm, stream, config);
}
ncclResult_t ncclScatterConfig(const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                               cudaStream_t stream, const ncclCollConfig_t* config) noexcept {
  return collective("ncclScatterConfig", Collective::scatter, {input, output, count, type, ncclSum, root}, comm, stream, config);
}

ncclResult_t ncclSend(const void* input, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) noexcept {
  return transfer("ncclSend", engine::Transfer::Kind::send, const_cast<void*>(input), count, type, peer, comm, stream);
}
ncclResult_t ncclRecv(void* output, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) noexcept {
  return transfer("ncclRecv", engine::Transfer::Kind::receive, output, count, type, peer, comm, stream);
}

ncclResult_t ncclGroupStart() noexcept {
  start_group();
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() noexcept { return answer("ncclGroupEnd", end_group); }
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) noexcept {
  return guard("ncclGroupSimulateEnd", [&]() -> Status {
    if (info != nullptr && (info->magic != NCCL_SIM_INFO_MAGIC || info->size < sizeof *info))
      return Error{Code::invalid_argument, "simInfo does not begin with NCCL_SIM_INFO_INITIALIZER"};
    const auto us = GYRE_TRY(simulate_group());
    if (info != nullptr && us) info->estimatedTime = static_cast<float>(*us);
    return {};
  });
}

// Numbers are not used again, so that one of another communicator, or a destroyed one, is known for that.
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t residence,
                                      ncclComm_t handle) noexcept {
  return guard("ncclRedOpCreatePreMulSum", [&]() -> Status {
    static std::atomic<int> next{ncclNumOps};
    const Shared comm = GYRE_TRY(open_comm(handle));
    PremulSum sum{GYRE_TRY(type_of(type)), 0, nullptr};
    if (op == nullptr || scalar == nullptr) return Error{Code::invalid_argument, op == nullptr ? "op is NULL" : "scalar is NULL"};
    if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate)
      return Error{Code::invalid_argument, fmt::format("there is no residence {}", static_cast<int>(residence))};
    if (cuda::on_gpu(scalar) && (residence != ncclScalarDevice || comm->on_gpu() == nullptr))
      return Error{Code::invalid_usage, fmt::format("the scalar at {} is in a GPU's memory", scalar)};
    if (residence == ncclScalarHostImmediate)
      sum.scalar = engine::scalar_bits(sum.type, scalar);
    else
      sum.at = scalar;
    const int number = next.fetch_add(1);
    if (number < ncclNumOps) return Error{Code::invalid_usage, "this process has made all the operations that there are numbers for"};
    comm->premul_sums.emplace(number, sum);
    *op = static_cast<ncclRedOp_t>(number);
    return {};
  });
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t handle) noexcept {
  return guard("ncclRedOpDestroy", [&]() -> Status {
    const Shared comm = GYRE_TRY(find(handle));
    if (comm->premul_sums.erase(op) == 1) return {};
    return Error{Code::invalid_argument, fmt::format("operation {} was not made on this communicator", static_cast<int>(op))};
  });
}

}  // namespace stand_alone
}  // namespace gyre::plugin::nccl
