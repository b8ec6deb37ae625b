#include "plugin/nccl/wrap_group.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "plugin/nccl/missing.h"
#include "plugin/nccl/run.h"
#include "plugin/nccl/wrap_gpu.h"
#include "plugin/nccl/wrap_real.h"

namespace gyre::plugin::nccl::wrap {
namespace {

/// On a stream; however many it is in the order of the communicator's calls once.
struct ByNccl {
  std::shared_ptr<Beside> comm;
  cudaStream_t stream;
  size_t declined;  // so many of which other ranks may think that gyre runs them
};

struct ToCome {
  std::shared_ptr<Beside> comm;
  Beside::Window window;
  const ncclWindow_t* made;
};

struct WrapGroup {
  int depth = 0;
  bool is_nccls = false;
  std::vector<Issued> held;
  HeldOnGpu on_gpu;
  std::vector<ByNccl> given;  // to NCCL, of communicators that gyre has, too
  std::vector<Birth> births;
  std::vector<ToCome> windows;
  std::vector<Forward> behind;        // to be given to NCCL when the group has ended
  ncclResult_t failed = ncclSuccess;  // the first call that has
  bool nccl_failed = false;           // a call that NCCL was given has
};
thread_local WrapGroup open_group;

void remember(ToCome one) {
  one.window.window = *one.made;
  if (one.window.window != nullptr) one.comm->windows.push_back(one.window);
}

ncclResult_t forwarded(const Forward& forward) {
  const ncclResult_t result = forward();
  if (result == ncclSuccess || result == ncclInProgress) return result;
  open_group.nccl_failed = open_group.depth > 0;
  forget_last_error();
  return result;
}

void note_given(const std::shared_ptr<Beside>& comm, cudaStream_t stream, size_t declined) {
  auto& given = open_group.given;
  const auto known =
      std::find_if(given.rbegin(), given.rend(), [&](const ByNccl& one) { return one.comm == comm && one.stream == stream; });
  if (known == given.rend())
    given.push_back({comm, stream, declined});
  else
    known->declined += declined;
}

ncclResult_t give(const Issued& issued) {
  note_given(issued.comm, issued.operation.stream, issued.comm->on_gpu() == nullptr ? 1 : 0);
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

// As above, of one communicator that has calls on GPU memory.
void leave_group_to_nccl(const std::shared_ptr<Beside>& comm) {
  for (const Issued& issued : open_group.on_gpu.leave_to_nccl(comm)) {
    issued.comm->say(*issued.operation.call, "NCCL", "another collective of its group is NCCL's");
    give(issued);
  }
}

ncclResult_t answered(const char* name, const Status& status) {
  return guard(name, [&] { return status; });
}

/// Both engines have done what comes before.
bool is_next(const Issued& issued) { return cuda::wait_for(issued.operation.stream, issued.comm->context) && issued.comm->by_nccl.wait(); }

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
  for (const Issued& issued : calls) {
    const ncclResult_t marked = answered(issued.operation.name, issued.comm->by_nccl.set(issued.operation.stream));
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
      comm->say(*issued.operation.call, "gyre", comm->rules.decided_by());
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

Result<ncclResult_t> issue_on_gpu(Issued issued) {
  WrapGroup& group = open_group;
  if (group.depth == 0) return run_on_gpu({&issued, 1});
  if (group.on_gpu.is_nccls(*issued.comm)) return give(issued);
  group.on_gpu.hold(std::move(issued));
  return ncclSuccess;
}

Status note_one(const ByNccl& one, bool done) {
  GYRE_TRY(one.comm->by_nccl.set(one.stream));
  if (done && !GYRE_TRY(cuda::captures(one.stream, one.comm->context))) one.comm->by_gyre.clear();
  return {};
}
// Of calls that NCCL will launch: after what gyre has of their communicators, on whatever stream.
Status order_after_gyre(const std::vector<ByNccl>& given) {
  for (const ByNccl& one : given) GYRE_TRY(one.comm->by_gyre.before(one.stream));
  return {};
}
// What NCCL has come to, or else whether that has its place in the order.
ncclResult_t note_launched(const std::vector<ByNccl>& given, ncclResult_t result) {
  ncclResult_t all = result;
  for (const ByNccl& one : given) {
    const ncclResult_t own = answered("the order of NCCL's calls and gyre's", note_one(one, result == ncclSuccess));
    if (all == ncclSuccess) all = own;
  }
  return all;
}

// An error here is all that can be said yet of a call that has returned.
ncclResult_t pass_behind(const WrapGroup& ended, ncclResult_t result) {
  for (const Forward& forward : ended.behind) {
    const ncclResult_t own = forwarded(forward);
    if (result == ncclSuccess) result = own;
  }
  return result;
}

// gyre's collectives come before what else the group has, which NCCL launches at its end. It may launch that after an error, too.
ncclResult_t end_on_gpu(const WrapGroup& ended) {
  ncclResult_t result = ended.failed;
  if (result == ncclSuccess && !ended.on_gpu.empty()) result = answer("ncclGroupEnd", [&] { return run_on_gpu(ended.on_gpu.calls()); });
  const ncclResult_t ordered = answered("ncclGroupEnd", order_after_gyre(ended.given));
  return result == ncclSuccess ? ordered : result;
}

// Nothing is done of a group of which a call was wrong. Of a call that gyre has refused NCCL hears by one that it must refuse, too: its
// checks of arguments spoil the group that is open. By NCCL's own words this would be that call's error, so gyre's stay the last.
ncclResult_t end_spoiled(ncclResult_t why) {
  std::ignore = call_real<&Table::ncclAllReduce>(nullptr, nullptr, size_t{0}, ncclFloat32, ncclSum, nullptr, nullptr);
  std::ignore = call_real<&Table::ncclGroupEnd>();
  return why;
}

}  // namespace

Result<ncclResult_t> issue(Issued issued) {
  if (issued.comm->on_gpu() != nullptr) return issue_on_gpu(std::move(issued));
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

Result<ncclResult_t> leave(const std::shared_ptr<Beside>& comm, cudaStream_t stream, const Forward& forward) {
  if (comm != nullptr && open_group.depth > 0) leave_group_to_nccl(comm);
  return pass(comm, stream, forward);
}

Result<ncclResult_t> pass(const std::shared_ptr<Beside>& comm, cudaStream_t stream, const Forward& forward) {
  if (open_group.depth > 0) {
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
  if (comm == nullptr || open_group.depth == 0 || !open_group.on_gpu.has(*comm)) return pass(nullptr, nullptr, forward);
  open_group.behind.push_back(forward);
  return ncclSuccess;
}

ncclResult_t noted(ncclResult_t result) {
  const bool failed = result != ncclSuccess && result != ncclInProgress;
  if (failed && open_group.depth > 0 && open_group.failed == ncclSuccess) open_group.failed = result;
  return result;
}

// A rank that takes nothing over only says so, for which nothing here waits.
ncclResult_t formed(ncclResult_t by_nccl, std::vector<Birth> births) {
  if (!offer().any()) {
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

void registered(const std::shared_ptr<Beside>& comm, const void* memory, size_t bytes, const ncclWindow_t* made) {
  if (comm == nullptr) return;
  const ToCome one{comm, {nullptr, static_cast<const std::byte*>(memory), bytes}, made};
  if (open_group.depth == 0) return remember(one);
  open_group.windows.push_back(one);
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
  const ncclResult_t by_gyre = end_on_gpu(ended);
  const bool spoils = by_gyre != ncclSuccess && !ended.nccl_failed;
  ncclResult_t result = spoils ? end_spoiled(by_gyre) : forwarded([] { return call_real<&Table::ncclGroupEnd>(); });
  result = note_launched(ended.given, result == ncclSuccess ? by_gyre : result);
  form(ended.births, result);
  if (result == ncclSuccess) std::for_each(ended.windows.begin(), ended.windows.end(), remember);
  result = pass_behind(ended, result);
  if (ended.held.empty()) return result;
  if (result == ncclSuccess) return settle(ended.held);
  Beside::decline(ended.held.front().comm, ended.held.size());  // and the group is dropped
  return result;
}

// An NCCL that lacks it ends no group.
ncclResult_t simulate_group(ncclSimInfo_t* info) {
  if (open_group.depth != 1 || !has<&Table::ncclGroupSimulateEnd>(real())) {
    if (open_group.depth > 1 && has<&Table::ncclGroupSimulateEnd>(real())) --open_group.depth;
    return call_real<&Table::ncclGroupSimulateEnd>(info);
  }
  const WrapGroup ended = std::exchange(open_group, WrapGroup());
  for (const Issued& issued : ended.held) forwarded(issued.forward);
  for (const Issued& issued : ended.on_gpu.calls()) forwarded(issued.forward);
  return pass_behind(ended, call_real<&Table::ncclGroupSimulateEnd>(info));
}

}  // namespace gyre::plugin::nccl::wrap
