// NCCL's collectives, sends and receives, and groups of them, where gyre may run some.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "plugin/nccl/cuda_driver.h"
#include "plugin/nccl/wrap.h"
#include "plugin/nccl/wrap_gpu.h"
#include "plugin/nccl/wrap_group.h"
#include "plugin/nccl/wrap_real.h"

namespace gyre::plugin::nccl {
namespace {

using wrap::Beside;
using wrap::call_real;
using wrap::Forward;
using wrap::Issued;

struct Given {
  const void* input;
  void* output;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op = ncclSum;
  int root = 0;
};

bool is_built_in(ncclRedOp_t op) { return static_cast<unsigned>(op) < reduce_op_count; }

/// What is equal on all ranks, of which each may have a number of its own for an operation of the program's. None: there is no such type.
std::optional<engine::Call> described(Collective collective, const Given& given) {
  if (static_cast<unsigned>(given.type) >= data_type_count) return std::nullopt;
  const ReduceOp op = is_built_in(given.op) ? static_cast<ReduceOp>(given.op) : ReduceOp::premul_sum;
  return engine::Call{collective, given.count, static_cast<DataType>(given.type), op, given.root, 0};
}

/// Null: the operation is known here, and set.
const char* choose_operation(Operation& operation, const Comm& comm, const Given& given) {
  if (is_built_in(given.op)) return nullptr;
  const auto found = comm.premul_sums.find(given.op);
  if (found == comm.premul_sums.end() || found->second.type != operation.call->type) return "gyre does not know its operation";
  operation.call->scalar = found->second.scalar;
  operation.scalar_at = found->second.at;
  return nullptr;
}

/// Why this rank can't run by gyre what the rules allow on host memory.
const char* unwilling(const Operation& operation) {
  const Comm& comm = *operation.comm;
  const engine::Call& call = *operation.call;
  const engine::Extent extent = engine::extent(call, comm.rank, comm.size);
  if (engine::refuse(call, comm.rank, extent, {operation.input, operation.output, call.scalar})) return "gyre does not take its buffers";
  const auto captured = cuda::captures(operation.stream, operation.context);
  if (!captured) return "CUDA has failed";
  if (*captured) return "its stream is being captured";
  const bool on_gpu = (extent.input_bytes > 0 && cuda::on_gpu(operation.input)) ||
                      (extent.output_bytes > 0 && cuda::on_gpu(operation.output)) || cuda::on_gpu(operation.scalar_at);
  return on_gpu ? "it has a GPU's memory" : nullptr;
}

// An operation that gyre does not know is none of this communicator's, which NCCL says.
Result<ncclResult_t> on_gpu_or_nccl(Issued issued) {
  const std::string_view why =
      issued.unwilling != nullptr ? std::string_view(issued.unwilling) : GYRE_TRY(wrap::why_not_on_gpu(*issued.comm, issued.operation));
  if (!why.empty()) {
    issued.comm->say(*issued.operation.call, "NCCL", why);
    return wrap::leave(issued.comm, issued.operation.stream, issued.forward);
  }
  GYRE_TRY(wrap::place_on_gpu(issued.operation));
  return wrap::issue(std::move(issued));
}

Result<ncclResult_t> collective_or_nccl(const char* name, Collective collective, const Given& given, ncclComm_t handle, cudaStream_t stream,
                                        const Forward& forward) {
  const auto comm = GYRE_TRY(wrap::ready_beside(handle));
  if (comm != nullptr && comm->finalized) return wrap::leave(comm, stream, forward);  // which NCCL has to refuse
  const auto call = comm == nullptr ? std::nullopt : described(collective, given);
  if (!call) return wrap::leave(comm, stream, forward);
  const bool on_gpu = comm->on_gpu() != nullptr;
  if (const auto why = comm->rules.why_not(*call, comm->size, on_gpu); !why.empty()) {
    comm->say(*call, "NCCL", why);
    return wrap::leave(comm, stream, forward);
  }
  Issued issued{comm, Operation{comm, name, call, {}, given.input, given.output, nullptr, stream}, nullptr, forward.keep()};
  issued.operation.context = comm->context;
  if (reduces(collective)) issued.unwilling = choose_operation(issued.operation, *comm, given);
  if (on_gpu) return on_gpu_or_nccl(std::move(issued));
  if (issued.unwilling == nullptr) issued.unwilling = unwilling(issued.operation);
  return wrap::issue(std::move(issued));
}

template <auto slot, class... A>
ncclResult_t wrapped(const char* name, Collective collective, const Given& given, ncclComm_t comm, cudaStream_t stream,
                     A... arguments) noexcept {
  return wrap::noted(answer(name, [&] {
    return collective_or_nccl(name, collective, given, comm, stream, [=] { return call_real<slot>(arguments..., comm, stream); });
  }));
}

/// With a configuration of its own, which is the same on all ranks by NCCL's rules, it is NCCL's; without one it is the plain call.
template <auto slot, auto plain, class... A>
ncclResult_t configured(const char* name, Collective collective, const Given& given, ncclComm_t handle, cudaStream_t stream,
                        const ncclCollConfig_t* config, A... arguments) noexcept {
  if (config == nullptr) return plain(arguments..., handle, stream);
  return wrap::noted(answer(name, [&]() -> Result<ncclResult_t> {
    const auto comm = GYRE_TRY(wrap::ready_beside(handle));
    const auto call = comm == nullptr || comm->finalized ? std::nullopt : described(collective, given);
    if (call) comm->say(*call, "NCCL", "it has a configuration of its own");
    return wrap::leave(comm, stream, [=] { return call_real<slot>(arguments..., handle, stream, config); });
  }));
}

/// What is NCCL's, and makes its group NCCL's.
template <auto slot, class... A>
ncclResult_t nccls(const char* name, ncclComm_t comm, cudaStream_t stream, A... arguments) noexcept {
  return wrap::noted(answer(name, [&]() -> Result<ncclResult_t> {
    const auto known = GYRE_TRY(wrap::ready_beside(comm));
    return wrap::pass(known, stream, [=] { return call_real<slot>(arguments...); });
  }));
}

}  // namespace

namespace wrap {

ncclResult_t ncclAllReduce(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) noexcept {
  return wrapped<&Table::ncclAllReduce>("ncclAllReduce", Collective::all_reduce, {input, output, count, type, op}, comm, stream, input,
                                        output, count, type, op);
}
ncclResult_t ncclReduceScatter(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) noexcept {
  return wrapped<&Table::ncclReduceScatter>("ncclReduceScatter", Collective::reduce_scatter, {input, output, count, type, op}, comm, stream,
                                            input, output, count, type, op);
}
ncclResult_t ncclReduce(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                        cudaStream_t stream) noexcept {
  return wrapped<&Table::ncclReduce>("ncclReduce", Collective::reduce, {input, output, count, type, op, root}, comm, stream, input, output,
                                     count, type, op, root);
}
ncclResult_t ncclBroadcast(const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) noexcept {
  return wrapped<&Table::ncclBroadcast>("ncclBroadcast", Collective::broadcast, {input, output, count, type, ncclSum, root}, comm, stream,
                                        input, output, count, type, root);
}
ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) noexcept {
  return wrapped<&Table::ncclBcast>("ncclBcast", Collective::broadcast, {buffer, buffer, count, type, ncclSum, root}, comm, stream, buffer,
                                    count, type, root);
}
ncclResult_t ncclAllGather(const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) noexcept {
  return wrapped<&Table::ncclAllGather>("ncclAllGather", Collective::all_gather, {input, output, count, type}, comm, stream, input, output,
                                        count, type);
}
ncclResult_t ncclAlltoAll(const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) noexcept {
  return wrapped<&Table::ncclAlltoAll>("ncclAlltoAll", Collective::all_to_all, {input, output, count, type}, comm, stream, input, output,
                                       count, type);
}
ncclResult_t ncclGather(const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream) noexcept {
  return wrapped<&Table::ncclGather>("ncclGather", Collective::gather, {input, output, count, type, ncclSum, root}, comm, stream, input,
                                     output, count, type, root);
}
ncclResult_t ncclScatter(const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream) noexcept {
  return wrapped<&Table::ncclScatter>("ncclScatter", Collective::scatter, {input, output, count, type, ncclSum, root}, comm, stream, input,
                                      output, count, type, root);
}

ncclResult_t ncclAllReduceConfig(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                 cudaStream_t stream, const ncclCollConfig_t* config) noexcept {
  return configured<&Table::ncclAllReduceConfig, ncclAllReduce>("ncclAllReduceConfig", Collective::all_reduce,
                                                                {input, output, count, type, op}, comm, stream, config, input, output,
                                                                count, type, op);
}
ncclResult_t ncclReduceScatterConfig(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                     cudaStream_t stream, const ncclCollConfig_t* config) noexcept {
  return configured<&Table::ncclReduceScatterConfig, ncclReduceScatter>("ncclReduceScatterConfig", Collective::reduce_scatter,
                                                                        {input, output, count, type, op}, comm, stream, config, input,
                                                                        output, count, type, op);
}
ncclResult_t ncclReduceConfig(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                              cudaStream_t stream, const ncclCollConfig_t* config) noexcept {
  return configured<&Table::ncclReduceConfig, ncclReduce>("ncclReduceConfig", Collective::reduce, {input, output, count, type, op, root},
                                                          comm, stream, config, input, output, count, type, op, root);
}
ncclResult_t ncclBroadcastConfig(const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                                 cudaStream_t stream, const ncclCollConfig_t* config) noexcept {
  return configured<&Table::ncclBroadcastConfig, ncclBroadcast>("ncclBroadcastConfig", Collective::broadcast,
                                                                {input, output, count, type, ncclSum, root}, comm, stream, config, input,
                                                                output, count, type, root);
}
ncclResult_t ncclAllGatherConfig(const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,
                                 const ncclCollConfig_t* config) noexcept {
  return configured<&Table::ncclAllGatherConfig, ncclAllGather>("ncclAllGatherConfig", Collective::all_gather, {input, output, count, type},
                                                                comm, stream, config, input, output, count, type);
}
ncclResult_t ncclAlltoAllConfig(const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,
                                const ncclCollConfig_t* config) noexcept {
  return configured<&Table::ncclAlltoAllConfig, ncclAlltoAll>("ncclAlltoAllConfig", Collective::all_to_all, {input, output, count, type},
                                                              comm, stream, config, input, output, count, type);
}
ncclResult_t ncclGatherConfig(const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                              cudaStream_t stream, const ncclCollConfig_t* config) noexcept {
  return configured<&Table::ncclGatherConfig, ncclGather>("ncclGatherConfig", Collective::gather,
                                                          {input, output, count, type, ncclSum, root}, comm, stream, config, input, output,
                                                          count, type, root);
}
ncclResult_t ncclScatterConfig(const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                               cudaStream_t stream, const ncclCollConfig_t* config) noexcept {
  return configured<&Table::ncclScatterConfig, ncclScatter>("ncclScatterConfig", Collective::scatter,
                                                            {input, output, count, type, ncclSum, root}, comm, stream, config, input,
                                                            output, count, type, root);
}

ncclResult_t ncclSend(const void* input, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) noexcept {
  return nccls<&Table::ncclSend>("ncclSend", comm, stream, input, count, type, peer, comm, stream);
}
ncclResult_t ncclRecv(void* output, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) noexcept {
  return nccls<&Table::ncclRecv>("ncclRecv", comm, stream, output, count, type, peer, comm, stream);
}
ncclResult_t ncclPutSignal(const void* input, size_t count, ncclDataType_t type, int peer, ncclWindow_t window, size_t offset, int signal,
                           int context, unsigned flags, ncclComm_t comm, cudaStream_t stream) noexcept {
  return nccls<&Table::ncclPutSignal>("ncclPutSignal", comm, stream, input, count, type, peer, window, offset, signal, context, flags, comm,
                                      stream);
}
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags, ncclComm_t comm, cudaStream_t stream) noexcept {
  return nccls<&Table::ncclSignal>("ncclSignal", comm, stream, peer, signal, context, flags, comm, stream);
}
ncclResult_t ncclWaitSignal(int count, ncclWaitSignalDesc_t* signals, ncclComm_t comm, cudaStream_t stream) noexcept {
  return nccls<&Table::ncclWaitSignal>("ncclWaitSignal", comm, stream, count, signals, comm, stream);
}

ncclResult_t ncclGroupStart() noexcept { return start_group(); }
ncclResult_t ncclGroupEnd() noexcept { return answer("ncclGroupEnd", end_group); }
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) noexcept {
  return answer("ncclGroupSimulateEnd", [&]() -> Result<ncclResult_t> { return simulate_group(info); });
}

// NCCL numbers them; gyre only remembers what they multiply by.
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t residence,
                                      ncclComm_t handle) noexcept {
  return answer("ncclRedOpCreatePreMulSum", [&]() -> Result<ncclResult_t> {
    const auto comm = GYRE_TRY(ready_beside(handle));
    const ncclResult_t result = hear_real<&Table::ncclRedOpCreatePreMulSum>(op, scalar, type, residence, handle);
    if (result != ncclSuccess || comm == nullptr || static_cast<unsigned>(type) >= data_type_count) return result;
    PremulSum sum{static_cast<DataType>(type), 0, nullptr};
    if (residence == ncclScalarHostImmediate)
      sum.scalar = engine::scalar_bits(sum.type, scalar);
    else
      sum.at = scalar;
    comm->premul_sums.insert_or_assign(*op, sum);
    return result;
  });
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t handle) noexcept {
  return answer("ncclRedOpDestroy", [&]() -> Result<ncclResult_t> {
    const auto comm = beside(handle);
    const bool known = comm != nullptr && comm->premul_sums.contains(op);
    const auto forward = [=] {
      const ncclResult_t result = call_real<&Table::ncclRedOpDestroy>(op, handle);
      if (known && result == ncclSuccess) comm->premul_sums.erase(op);
      return result;
    };
    return known ? pass_behind_held(comm, forward) : pass(nullptr, nullptr, forward);  // which is NCCL's to refuse, now
  });
}

}  // namespace wrap
}  // namespace gyre::plugin::nccl
