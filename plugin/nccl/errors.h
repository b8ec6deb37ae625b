// Errors on their way out of gyre's NCCL interface: logged once, and kept for ncclGetLastError.
#pragma once
#include <utility>

#include "base/config.h"
#include "plugin/guard.h"

namespace gyre::plugin::nccl {

/// The text of the process's last error; empty: there was none. Stays valid.
const char* last_error() noexcept;
/// Somebody else's error was the last, unless gyre has said one since that text was.
void forget_last_error(const char* before) noexcept;
/// Lines from GYRE_LOG's level on are logged from now on.
void start_log(const Config&);
/// A call has failed, and is not only in progress.
inline bool is_error(ncclResult_t result) { return result != ncclSuccess && result != ncclInProgress; }
/// What a call that says more than success or an error returns, such as ncclInProgress.
template <class Call>
ncclResult_t answer(const char* name, Call&& call) noexcept {
  ncclResult_t outcome = ncclSuccess;
  const ncclResult_t result = guard(name, [&]() -> Status {
    outcome = GYRE_TRY(std::forward<Call>(call)());
    return {};
  });
  return result == ncclSuccess ? outcome : result;
}

}  // namespace gyre::plugin::nccl
