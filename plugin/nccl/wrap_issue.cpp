#include "plugin/nccl/wrap_issue.h"

#include <utility>
#include <vector>

#include "plugin/nccl/wrap_open_group.h"
#include "plugin/nccl/wrap_order.h"
#include "plugin/nccl/wrap_settle.h"

namespace gyre::plugin::nccl::wrap {
namespace {

ncclResult_t give(const Issued& issued) {
  note_given(issued.comm, issued.operation.stream, issued.comm->on_gpu() == nullptr ? 1 : 0);
  return forwarded(issued);
}

// What NCCL says of those held back it says again at the end of the group.
void give_all_to_nccl() {
  open_group().is_nccls = true;
  for (const Issued& issued : std::exchange(open_group().held, {})) {
    issued.comm->say(*issued.operation.call, "NCCL", "there are others in its group");
    give(issued);
  }
}

// As above, of one communicator that has calls on GPU memory.
void leave_group_to_nccl(const std::shared_ptr<Beside>& comm) {
  for (const Issued& issued : open_group().on_gpu.leave_to_nccl(comm)) {
    issued.comm->say(*issued.operation.call, "NCCL", "another collective of its group is NCCL's");
    give(issued);
  }
}

Result<ncclResult_t> issue_on_gpu(Issued issued) {
  WrapGroup& group = open_group();
  if (group.depth == 0) return run_on_gpu({&issued, 1});
  if (group.on_gpu.is_nccls(*issued.comm)) return give(issued);
  group.on_gpu.hold(std::move(issued));
  return ncclSuccess;
}

}  // namespace

Result<ncclResult_t> issue(Issued issued) {
  if (issued.comm->on_gpu() != nullptr) return issue_on_gpu(std::move(issued));
  WrapGroup& group = open_group();
  if (group.depth == 0) return settle({&issued, 1});
  const bool fits = group.held.empty() || group.held.front().comm == issued.comm;
  if (!group.is_nccls && issued.unwilling == nullptr && fits) {
    group.held.push_back(std::move(issued));
    return ncclSuccess;
  }
  give_all_to_nccl();
  return give(issued);
}

Result<ncclResult_t> leave(const std::shared_ptr<Beside>& comm, cudaStream_t stream, const Forward& forward) {
  if (comm != nullptr && open_group().depth > 0) leave_group_to_nccl(comm);
  return pass(comm, stream, forward);
}

Result<ncclResult_t> pass(const std::shared_ptr<Beside>& comm, cudaStream_t stream, const Forward& forward) {
  if (open_group().depth > 0) {
    give_all_to_nccl();
    if (comm != nullptr) note_given(comm, stream, 0);
    return forwarded(forward);
  }
  if (comm == nullptr) return forwarded(forward);
  const std::vector<ByNccl> alone{{comm, stream, 0}};
  GYRE_TRY(order_after_gyre(alone));
  const ncclResult_t result = forwarded(forward);
  return note_launched(alone, result);
}

Result<ncclResult_t> pass_behind_held(const std::shared_ptr<Beside>& comm, const Forward& forward) {
  WrapGroup& group = open_group();
  if (comm == nullptr || group.depth == 0 || !group.on_gpu.has(*comm)) return pass(nullptr, nullptr, forward);
  group.behind.emplace_back([comm, kept = forward.keep()] {
    const Status lives = comm->lives();
    return lives ? kept() : failed("what came behind a group", lives.error());
  });
  return ncclSuccess;
}

}  // namespace gyre::plugin::nccl::wrap
