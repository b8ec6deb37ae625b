#include "plugin/nccl/wrap_group.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "plugin/nccl/run.h"
#include "plugin/nccl/wrap_real.h"

namespace gyre::plugin::nccl::wrap {
namespace {

struct ByNccl {
  std::shared_ptr<Beside> comm;
  cudaStream_t stream;
  size_t declined;  // 1: other ranks may think that gyre runs it
};

struct WrapGroup {
  int depth = 0;
  bool is_nccls = false;
  std::vector<Issued> held;
  std::vector<ByNccl> given;  // to NCCL, of communicators that gyre has, too
  std::vector<Birth> births;
};
thread_local WrapGroup open_group;

ncclResult_t forwarded(const Forward& forward) {
  const ncclResult_t result = forward();
  if (result != ncclSuccess && result != ncclInProgress) forget_last_error();
  return result;
}

ncclResult_t give(const Issued& issued) {
  open_group.given.push_back({issued.comm, issued.operation.stream, 1});
  return forwarded(issued.forward);
}

// What NCCL says of those held back it says again at the end of the group.
void give_all_to_nccl() {
  open_group.is_nccls = true;
  for (const Issued& issued : std::exchange(open_group.held, {})) {
    issued.comm->say(*issued.operation.call, "NCCL", "there are others in its group");
    give(issued);
  }
}

/// Both engines have done what comes before.
bool is_next(const Issued& issued) { return cuda::wait_for(issued.operation.stream) && issued.comm->by_nccl.wait(); }

ncclResult_t by_nccl(const Issued& issued, std::string_view why) {
  issued.comm->say(*issued.operation.call, "NCCL", why);
  const ncclResult_t result = forwarded(issued.forward);
  issued.comm->by_nccl.set(issued.operation.stream);
  return result;
}

// One that is in no group, or of a group of such.
Result<ncclResult_t> settle(const Issued& issued) {
  Beside& comm = *issued.comm;
  const char* unwilling = issued.unwilling;
  if (unwilling == nullptr && !is_next(issued)) unwilling = "CUDA has failed";
  if (unwilling != nullptr) {
    Beside::decline(issued.comm, 1);
    return by_nccl(issued, unwilling);
  }
  comm.wait_for_declined();
  if (!comm.begin_call(false)) return Error{Code::invalid_usage, "another call is under way on the communicator, or it was aborted"};
  bool all = false;
  const ncclResult_t asked = guard(issued.operation.name, [&]() -> Status {
    all = GYRE_TRY(comm.agree(true));
    return {};
  });
  if (asked == ncclSuccess && all) {
    comm.say(*issued.operation.call, "gyre");
    return run(std::vector<Operation>{issued.operation});
  }
  comm.end_call(asked);
  return asked == ncclSuccess ? by_nccl(issued, "another rank wants it so") : asked;
}

void tell_declined(const std::vector<ByNccl>& given) {
  for (const ByNccl& one : given) {
    if (one.declined > 0) Beside::decline(one.comm, one.declined);
  }
}

Result<ncclResult_t> settle_all(const std::vector<Issued>& held, ncclResult_t by_nccl) {
  ncclResult_t first = by_nccl;
  for (const Issued& issued : held) {
    if (by_nccl != ncclSuccess) {  // and the group is dropped
      Beside::decline(issued.comm, 1);
      continue;
    }
    const ncclResult_t result = answer(issued.operation.name, [&] { return settle(issued); });
    if (first == ncclSuccess) first = result;
  }
  return first;
}

}  // namespace

Result<ncclResult_t> issue(Issued issued) {
  WrapGroup& group = open_group;
  if (group.depth == 0) return settle(issued);
  const bool fits = group.held.empty() || group.held.front().comm == issued.comm;
  if (!group.is_nccls && issued.unwilling == nullptr && fits) {
    group.held.push_back(std::move(issued));
    return ncclSuccess;
  }
  give_all_to_nccl();
  return give(issued);
}

Result<ncclResult_t> pass(const std::shared_ptr<Beside>& comm, cudaStream_t stream, const Forward& forward) {
  if (open_group.depth > 0) {
    give_all_to_nccl();
    if (comm != nullptr) open_group.given.push_back({comm, stream, 0});
    return forwarded(forward);
  }
  const ncclResult_t result = forwarded(forward);
  if (comm != nullptr) comm->by_nccl.set(stream);
  return result;
}

// A rank that takes nothing over only says so, for which nothing here waits.
ncclResult_t formed(ncclResult_t by_nccl, std::vector<Birth> births) {
  if (!rules().any()) {
    if (!births.empty() && by_nccl == ncclSuccess) std::thread([births = std::move(births)] { form(births, ncclSuccess); }).detach();
    return by_nccl;
  }
  if (open_group.depth == 0) {
    form(births, by_nccl);
    return by_nccl;
  }
  std::move(births.begin(), births.end(), std::back_inserter(open_group.births));
  return by_nccl;
}

ncclResult_t start_group() {
  const ncclResult_t result = call_real<&Table::ncclGroupStart>();
  if (result == ncclSuccess) ++open_group.depth;
  return result;
}

// The others learn what is NCCL's here before NCCL may wait for them.
Result<ncclResult_t> end_group() {
  if (open_group.depth != 1) {
    if (open_group.depth > 1) --open_group.depth;
    return call_real<&Table::ncclGroupEnd>();
  }
  const WrapGroup ended = std::exchange(open_group, WrapGroup());
  tell_declined(ended.given);
  const ncclResult_t result = forwarded([] { return call_real<&Table::ncclGroupEnd>(); });
  for (const ByNccl& one : ended.given) one.comm->by_nccl.set(one.stream);
  form(ended.births, result);
  return settle_all(ended.held, result);
}

ncclResult_t simulate_group(ncclSimInfo_t* info) {
  if (open_group.depth > 1) {
    --open_group.depth;
  } else if (open_group.depth == 1) {
    for (const Issued& issued : std::exchange(open_group, WrapGroup()).held) forwarded(issued.forward);
  }
  return call_real<&Table::ncclGroupSimulateEnd>(info);
}

}  // namespace gyre::plugin::nccl::wrap
