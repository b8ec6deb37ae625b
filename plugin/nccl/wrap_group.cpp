#include "plugin/nccl/wrap_group.h"

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "plugin/guard.h"
#include "plugin/nccl/errors.h"
#include "plugin/nccl/missing.h"
#include "plugin/nccl/wrap_made.h"
#include "plugin/nccl/wrap_open_group.h"
#include "plugin/nccl/wrap_real.h"
#include "plugin/nccl/wrap_settle.h"

namespace gyre::plugin::nccl::wrap {
namespace {

/// While there is one, who aborts or destroys by another thread waits before NCCL frees what it has in a group that ends.
class GroupEnding {
 public:
  explicit GroupEnding(const std::vector<ByNccl>& given) : given_(given) { count(1); }
  ~GroupEnding() { count(-1); }
  GroupEnding(const GroupEnding&) = delete;
  GroupEnding& operator=(const GroupEnding&) = delete;

 private:
  void count(int more) const {
    for (const ByNccl& one : given_) one.comm->ending_groups += more;
  }
  const std::vector<ByNccl>& given_;
};

void tell_declined(const std::vector<ByNccl>& given) {
  for (const ByNccl& one : given) {
    if (one.declined > 0) Beside::decline(one.comm, one.declined);
  }
}

// An error here is all that can be said yet of a call that has returned.
ncclResult_t pass_behind(const WrapGroup& ended, ncclResult_t result) {
  for (const Kept& forward : ended.behind) {
    const ncclResult_t own = forwarded(forward);
    if (result == ncclSuccess) result = own;
  }
  return result;
}

// gyre's collectives come before what else the group has, which NCCL launches at its end. It may launch that after an error, too.
ncclResult_t end_on_gpu(const WrapGroup& ended) {
  ncclResult_t result = ended.failed;
  if (result == ncclSuccess && !ended.on_gpu.empty()) result = answer("ncclGroupEnd", [&] { return run_on_gpu(ended.on_gpu.calls()); });
  const ncclResult_t ordered = guard("ncclGroupEnd", [&] { return order_after_gyre(ended.given); });
  return result == ncclSuccess ? ordered : result;
}

// Nothing is done of a group of which a call was wrong. Of a call that gyre has refused NCCL hears by one that it must refuse, too: its
// checks of arguments spoil the group that is open. By NCCL's own words this would be that call's error, so gyre's stay the last.
ncclResult_t end_spoiled() {
  std::ignore = call_real<&Table::ncclAllReduce>(nullptr, nullptr, size_t{0}, ncclFloat32, ncclSum, nullptr, nullptr);
  return call_real<&Table::ncclGroupEnd>();
}

}  // namespace

ncclResult_t noted(ncclResult_t result) {
  if (is_error(result) && open_group().depth > 0 && open_group().failed == ncclSuccess) open_group().failed = result;
  return result;
}

ncclResult_t start_group() {
  const ncclResult_t result = hear_real<&Table::ncclGroupStart>();
  if (result == ncclSuccess) ++open_group().depth;
  return result;
}

// The others learn what is NCCL's here before NCCL may wait for them.
Result<ncclResult_t> end_group() {
  if (open_group().depth != 1) {
    if (open_group().depth > 1) --open_group().depth;
    return hear_real<&Table::ncclGroupEnd>();
  }
  const WrapGroup ended = std::exchange(open_group(), WrapGroup());
  std::optional<GroupEnding> ending(ended.given);
  tell_declined(ended.given);
  const ncclResult_t by_gyre = end_on_gpu(ended);
  const bool spoils = by_gyre != ncclSuccess && !ended.nccl_failed;
  if (by_gyre == ncclSuccess) ending.reset();  // only the abort ends what NCCL may wait for
  const ncclResult_t by_nccl = spoils ? end_spoiled() : forwarded([] { return call_real<&Table::ncclGroupEnd>(); });
  ncclResult_t result = note_launched(ended.given, spoils || by_nccl == ncclSuccess ? by_gyre : by_nccl);
  ending.reset();
  make(ended.to_come, by_nccl);
  result = pass_behind(ended, result);
  if (ended.held.empty()) return result;
  if (result == ncclSuccess) return settle(ended.held);
  Beside::decline(ended.held.front().comm, ended.held.size());  // and the group is dropped
  return result;
}

// An NCCL that lacks it ends no group.
ncclResult_t simulate_group(ncclSimInfo_t* info) {
  if (open_group().depth != 1 || !has<&Table::ncclGroupSimulateEnd>(real())) {
    if (open_group().depth > 1 && has<&Table::ncclGroupSimulateEnd>(real())) --open_group().depth;
    return hear_real<&Table::ncclGroupSimulateEnd>(info);
  }
  const WrapGroup ended = std::exchange(open_group(), WrapGroup());
  ncclResult_t first = ncclSuccess;
  const auto note = [&](ncclResult_t own) { first = first == ncclSuccess ? own : first; };
  for (const Issued& issued : ended.held) note(forwarded(issued));
  for (const Issued& issued : ended.on_gpu.calls()) note(forwarded(issued));
  note(hear_real<&Table::ncclGroupSimulateEnd>(info));
  return pass_behind(ended, first);
}

}  // namespace gyre::plugin::nccl::wrap
