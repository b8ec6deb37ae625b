#include "plugin/nccl/wrap_settle.h"

#include <string_view>
#include <vector>

#include "base/log.h"
#include "plugin/guard.h"
#include "plugin/nccl/run.h"
#include "plugin/nccl/wrap_open_group.h"
#include "plugin/nccl/wrap_real.h"

namespace gyre::plugin::nccl::wrap {
namespace {

/// Until both engines have done what comes before.
Status wait_for_turn(std::span<const Issued> calls) {
  for (const Issued& issued : calls) {
    GYRE_TRY(issued.comm->wait_for(issued.operation.stream, issued.comm->context));
    GYRE_TRY(issued.comm->mark_launched());
    GYRE_TRY(issued.comm->wait_for(issued.comm->by_nccl));
  }
  return {};
}

// Several are a group of NCCL's on every rank: NCCL chooses for them together.
ncclResult_t by_nccl(std::span<const Issued> calls, std::string_view why) {
  ncclResult_t first = calls.size() > 1 ? forwarded([] { return call_real<&Table::ncclGroupStart>(); }) : ncclSuccess;
  if (first != ncclSuccess) return first;
  for (const Issued& issued : calls) {
    issued.comm->say(*issued.operation.call, "NCCL", why);
    const ncclResult_t result = forwarded(issued);
    if (first == ncclSuccess) first = result;
  }
  if (calls.size() > 1) {
    const ncclResult_t ended = forwarded([] { return call_real<&Table::ncclGroupEnd>(); });
    if (first == ncclSuccess) first = ended;
  }
  const ncclResult_t launched = first;
  for (const Issued& issued : calls) {
    const ncclResult_t marked = guard(issued.operation.name, [&] { return issued.comm->note_by_nccl(issued.operation.stream, launched); });
    if (first == ncclSuccess) first = marked;
  }
  return first;
}

// Each call has a vote of its own, since ranks whose group has others, too, decline each.
Result<bool> agree(Beside& comm, size_t calls) {
  bool all = true;
  for (size_t i = 0; i < calls; ++i) all = GYRE_TRY(comm.agree(true)) && all;
  return all;
}

ncclResult_t by_gyre(std::span<const Issued> calls) {
  std::vector<Operation> operations;
  for (const Issued& issued : calls) {
    issued.comm->say(*issued.operation.call, "gyre", issued.comm->rules.decided_by());
    operations.push_back(issued.operation);
  }
  return run(operations);
}

}  // namespace

Result<ncclResult_t> settle(std::span<const Issued> calls) {
  const std::shared_ptr<Beside>& comm = calls.front().comm;
  const char* unwilling = calls.front().unwilling;
  const Status next = unwilling == nullptr ? wait_for_turn(calls) : Status();
  if (!next && (comm->aborted() || comm->state() != ncclSuccess)) return next.error();
  if (!next) {
    unwilling = "CUDA has failed";
    log::warn("rank {} of {}: NCCL runs a call before which CUDA has failed: {}", comm->rank, comm->size, next.error().what);
  }
  if (unwilling != nullptr) {
    Beside::decline(comm, calls.size());
    return by_nccl(calls, unwilling);
  }
  comm->wait_for_declined();
  if (!comm->begin_call(false)) return Error{Code::invalid_usage, "another call is under way on the communicator, or it was aborted"};
  bool all = false;
  const ncclResult_t asked = guard(calls.front().operation.name, [&]() -> Status {
    all = GYRE_TRY(agree(*comm, calls.size()));
    return {};
  });
  if (asked == ncclSuccess && all) return by_gyre(calls);
  comm->end_call(asked);
  return asked == ncclSuccess ? by_nccl(calls, "another rank wants it so") : asked;
}

}  // namespace gyre::plugin::nccl::wrap
