// NCCL's functions that end and ask communicators, and what they have registered, where gyre has some beside NCCL's.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <tuple>

#include "plugin/guard.h"
#include "plugin/nccl/missing.h"
#include "plugin/nccl/wrap.h"
#include "plugin/nccl/wrap_issue.h"
#include "plugin/nccl/wrap_made.h"
#include "plugin/nccl/wrap_real.h"

namespace gyre::plugin::nccl {
namespace {

using wrap::call_real;
using wrap::hear_real;

constexpr std::chrono::milliseconds end_limit{2000};

/// What its streams were given has ended, or can't, and they go on; who has not asked for the error hears of it here.
void finish(const char* name, wrap::Beside& comm) {
  if (const Status finished = comm.finish(); !finished) failed(name, finished.error());
}

}  // namespace

namespace wrap {

// All ranks register symmetric windows together, each its own memory, as all give what they have back. Any other kind a rank may have
// alone, so that it decides nothing. NCCL succeeds without a window where it has none; of a communicator that does not block none of its
// ranks knows that when another one may call, so there the memory counts for good.
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* memory, size_t bytes, ncclWindow_t* window, int flags) noexcept {
  return answer("ncclCommWindowRegister", [&]() -> Result<ncclResult_t> {
    const auto known = GYRE_TRY(ready_beside(comm));
    const auto result =
        GYRE_TRY(pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommWindowRegister>(comm, memory, bytes, window, flags); }));
    const bool symmetric = (static_cast<unsigned>(flags) & NCCL_WIN_COLL_SYMMETRIC) != 0;
    if (!is_error(result) && window != nullptr && symmetric) registered(known, memory, bytes, window);
    return result;
  });
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) noexcept {
  return answer("ncclCommWindowDeregister", [&]() -> Result<ncclResult_t> {
    if (const auto owner = GYRE_TRY(settled_beside(comm)); owner != nullptr && window != nullptr)
      std::erase_if(owner->windows, [&](const Beside::Window& known) { return known.window == window; });
    return pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommWindowDeregister>(comm, window); });
  });
}

// What gyre has failed of has been told, and is no reason to keep the communicator.
ncclResult_t ncclCommFinalize(ncclComm_t comm) noexcept {
  return answer("ncclCommFinalize", [&]() -> Result<ncclResult_t> {
    const auto ended = GYRE_TRY(ready_beside(comm));
    if (ended == nullptr) return hear_real<&Table::ncclCommFinalize>(comm);
    if (ended->nccl_blocks) finish("ncclCommFinalize", *ended);
    GYRE_TRY(ended->lives());
    const ncclResult_t result = hear_real<&Table::ncclCommFinalize>(comm);
    if (!is_error(result)) ended->finalized = true;
    return result == ncclSuccess && ended->winds_up() ? ncclInProgress : result;
  });
}

// What streams were given of gyre's is waited for, or let go, since NCCL's may come after it; an abort ends that wait. Then by NCCL first,
// which waits for what is under way; its handle may come again at once, so gyre forgets it before.
ncclResult_t ncclCommDestroy(ncclComm_t comm) noexcept {
  return answer("ncclCommDestroy", [&]() -> Result<ncclResult_t> {
    const auto ended = GYRE_TRY(ready_beside(comm));
    if (ended != nullptr) {
      finish("ncclCommDestroy", *ended);
      if (!forget(comm, ended)) return Error{Code::invalid_argument, "another thread has ended the communicator"};
      ended->background.withdraw();
      ended->withdraw();
    }
    const ncclResult_t result = hear_real<&Table::ncclCommDestroy>(comm);
    if (ended != nullptr && !ended->wait_until_idle(end_limit)) ended->abort();
    return result;
  });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) noexcept {
  return answer("ncclCommAbort", [&]() -> Result<ncclResult_t> {
    const auto ended = take_beside(comm);
    if (ended != nullptr) {
      ended->abort();
      ended->background.withdraw();
      ended->withdraw();
    }
    const ncclResult_t result = hear_real<&Table::ncclCommAbort>(comm);
    if (ended != nullptr) ended->wait_until_idle(end_limit);
    return result;
  });
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) noexcept {
  return answer("ncclCommRevoke", [&]() -> Result<ncclResult_t> {
    const auto revoked = beside(comm);
    if (revoked == nullptr) return hear_real<&Table::ncclCommRevoke>(comm, flags);
    if (revoked->is_made())
      GYRE_TRY(revoked->give_up());
    else
      revoked->abort();
    const auto pause = revoked->nccl_blocks ? std::unique_lock<std::mutex>() : revoked->background.pause();
    return hear_real<&Table::ncclCommRevoke>(comm, flags);
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) noexcept {
  return answer("ncclCommGetAsyncError", [&]() -> Result<ncclResult_t> {
    const auto asked = beside(comm);
    if (asked == nullptr) return hear_real<&Table::ncclCommGetAsyncError>(comm, error);
    const ncclResult_t result = GYRE_TRY(ask(*asked, comm, error));
    if (result != ncclSuccess || is_error(*error)) return result;
    const bool given_up = asked->given_up;
    if (const ncclResult_t own = given_up ? ncclSuccess : asked->state(); own != ncclSuccess) *error = own;
    if (*error == ncclSuccess && asked->winds_up()) *error = ncclInProgress;
    if (*error == ncclSuccess && asked->launches_here()) std::ignore = asked->mark_launched();
    if (const auto untold = given_up ? std::nullopt : asked->untold()) failed("ncclCommGetAsyncError", *untold);
    return result;
  });
}

const char* ncclGetLastError(ncclComm_t comm) noexcept {
  const char* own = last_error();
  if (*own != '\0' || !has<&Table::ncclGetLastError>(real())) return own;  // which an NCCL before 2.13 has no words to add to
  return call_real<&Table::ncclGetLastError>(comm);
}

}  // namespace wrap
}  // namespace gyre::plugin::nccl
