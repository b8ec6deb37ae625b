#include "plugin/nccl/wrap_group.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/log.h"
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

using Calls = std::span<const Issued>;  // of one communicator

// Several are a group of NCCL's on every rank: NCCL chooses for them together.
ncclResult_t by_nccl(Calls calls, std::string_view why) {
  ncclResult_t first = calls.size() > 1 ? forwarded([] { return call_real<&Table::ncclGroupStart>(); }) : ncclSuccess;
  if (first != ncclSuccess) return first;
  for (const Issued& issued : calls) {
    issued.comm->say(*issued.operation.call, "NCCL", why);
    const ncclResult_t result = forwarded(issued.forward);
    if (first == ncclSuccess) first = result;
  }
  if (calls.size() > 1) first = forwarded([] { return call_real<&Table::ncclGroupEnd>(); });
  for (const Issued& issued : calls) issued.comm->by_nccl.set(issued.operation.stream);
  return first;
}

// Each call has a vote of its own, since ranks whose group has others, too, decline each.
Result<bool> agree(Beside& comm, size_t calls) {
  bool all = true;
  for (size_t i = 0; i < calls; ++i) all = GYRE_TRY(comm.agree(true)) && all;
  return all;
}

// One that is in no group, or a group of such.
Result<ncclResult_t> settle(Calls calls) {
  const std::shared_ptr<Beside>& comm = calls.front().comm;
  const char* unwilling = calls.front().unwilling;
  if (unwilling == nullptr && !std::all_of(calls.begin(), calls.end(), is_next)) unwilling = "CUDA has failed";
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
  if (asked == ncclSuccess && all) {
    std::vector<Operation> operations;
    for (const Issued& issued : calls) {
      comm->say(*issued.operation.call, "gyre");
      operations.push_back(issued.operation);
    }
    return run(operations);
  }
  comm->end_call(asked);
  return asked == ncclSuccess ? by_nccl(calls, "another rank wants it so") : asked;
}

void tell_declined(const std::vector<ByNccl>& given) {
  for (const ByNccl& one : given) {
    if (one.declined > 0) Beside::decline(one.comm, one.declined);
  }
}

}  // namespace

Result<ncclResult_t> issue(Issued issued) {
  WrapGroup& group = open_group;
  if (group.depth == 0) return settle({&issued, 1});
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
    if (births.empty() || by_nccl != ncclSuccess) return by_nccl;
    try {
      std::thread([births = std::move(births)] { form(births, ncclSuccess); }).detach();
    } catch (const std::system_error& error) {  // this rank stays away, and the others learn of it
      log::warn("no thread to say that NCCL runs all calls: {}", error.what());
    }
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
  if (ended.held.empty()) return result;
  if (result == ncclSuccess) return settle(ended.held);
  Beside::decline(ended.held.front().comm, ended.held.size());  // and the group is dropped
  return result;
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
