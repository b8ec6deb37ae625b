#include "plugin/nccl/wrap_order.h"

#include "plugin/guard.h"

namespace gyre::plugin::nccl::wrap {
namespace {

Status note_one(const ByNccl& one, ncclResult_t result) {
  Beside& comm = *one.comm;
  GYRE_TRY(comm.note_by_nccl(one.stream, result));
  if (result == ncclSuccess && comm.by_gyre.is_set() && !GYRE_TRY(cuda::captures(one.stream, comm.context))) comm.by_gyre.clear();
  return {};
}

}  // namespace

Status order_after_gyre(const std::vector<ByNccl>& given) {
  for (const ByNccl& one : given) GYRE_TRY(one.comm->by_gyre.before(one.stream));
  for (const ByNccl& one : given) GYRE_TRY(one.comm->lives());
  return {};
}

ncclResult_t note_launched(const std::vector<ByNccl>& given, ncclResult_t result) {
  ncclResult_t all = result;
  for (const ByNccl& one : given) {
    const ncclResult_t own = guard("the order of NCCL's calls and gyre's", [&] { return note_one(one, result); });
    if (all == ncclSuccess) all = own;
  }
  return all;
}

}  // namespace gyre::plugin::nccl::wrap
