#include "plugin/nccl/wrap_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gyre::plugin::nccl::wrap {
namespace {

bool is_of(const Issued& issued, const Beside& comm) { return issued.comm.get() == &comm; }

/// A buffer that each rank has, since each must come to the same answer.
bool in_windows(const Beside& comm, const Operation& operation) {
  const Collective collective = operation.call->collective;
  const bool from_root = collective == Collective::broadcast || collective == Collective::scatter;
  const bool to_root = collective == Collective::reduce || collective == Collective::gather;
  return (!from_root && comm.in_window(operation.input)) || (!to_root && comm.in_window(operation.output));
}

}  // namespace

// Where CUDA does not say this rank can't choose, since the others do.
Result<std::string_view> why_not_on_gpu(const Beside& comm, const Operation& operation) {
  if (GYRE_TRY(cuda::captures(operation.stream, comm.context))) return std::string_view("its stream is being captured");
  if (in_windows(comm, operation)) return std::string_view("its buffers are in a window");
  return std::string_view();
}

Status place_on_gpu(Operation& operation) {
  const engine::Call& call = *operation.call;
  const auto& comm = static_cast<const Beside&>(*operation.comm);
  const engine::Extent extent = engine::extent(call, comm.rank, comm.size);
  if (auto wrong = engine::refuse(call, comm.rank, extent, {operation.input, operation.output, call.scalar})) return *std::move(wrong);
  const void* const buffers[] = {extent.input_bytes > 0 ? operation.input : nullptr, extent.output_bytes > 0 ? operation.output : nullptr};
  for (const void* memory : buffers) {
    if (memory != nullptr && !cuda::reaches(memory))
      return Error{Code::invalid_usage,
                   fmt::format("the GPU does not reach {}, and this call is gyre's by {}", memory, comm.rules.decided_by())};
  }
  operation.on_gpu = true;
  return {};
}

bool HeldOnGpu::is_nccls(const Beside& comm) const {
  return std::any_of(nccls_.begin(), nccls_.end(), [&](const auto& one) { return one.get() == &comm; });
}

bool HeldOnGpu::has(const Beside& comm) const {
  return std::any_of(held_.begin(), held_.end(), [&](const Issued& issued) { return is_of(issued, comm); });
}

std::vector<Issued> HeldOnGpu::leave_to_nccl(const std::shared_ptr<Beside>& comm) {
  if (is_nccls(*comm)) return {};
  nccls_.push_back(comm);
  const auto first = std::stable_partition(held_.begin(), held_.end(), [&](const Issued& issued) { return !is_of(issued, *comm); });
  std::vector<Issued> left(std::make_move_iterator(first), std::make_move_iterator(held_.end()));
  held_.erase(first, held_.end());
  return left;
}

Result<ncclResult_t> run_on_gpu(std::span<const Issued> calls) {
  std::vector<Operation> operations;
  for (const Issued& issued : calls) {
    // ncclCommGetAsyncError may have said it already, of which what runs on the GPU hears by another way.
    const transport::Bootstrap& ranks = issued.comm->engine().bootstrap();
    if (const Error* lost = ranks.attention() ? ranks.failure() : nullptr) return *lost;
    issued.comm->say(*issued.operation.call, "gyre", issued.comm->rules.decided_by());
    GYRE_TRY(issued.comm->mark_launched());
    GYRE_TRY(issued.comm->by_nccl.before(issued.operation.stream));
    operations.push_back(issued.operation);
  }
  auto result = perform(std::move(operations));
  Status marked;
  for (const Issued& issued : calls) {
    const Status own = issued.comm->by_gyre.set(issued.operation.stream);
    if (marked) marked = own;
    if (result && *result == ncclSuccess) issued.comm->by_nccl.clear();
  }
  if (result && *result == ncclSuccess) GYRE_TRY(marked);
  return result;
}

}  // namespace gyre::plugin::nccl::wrap
