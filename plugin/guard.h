// The one way out of the plugin into NCCL: what a call returns or throws becomes a ncclResult_t, and an error is logged once, as a warning
// of NCCL's, since some releases only show that. Nothing is thrown past it: above are C frames. On success it costs a compare.
// It must not know what is called.
#pragma once
#include <utility>

#include "base/result.h"
#include "plugin/abi/nccl_types.h"

namespace gyre::plugin {

/// What NCCL is told of an error.
ncclResult_t nccl_result(Code) noexcept;
/// The same, and the error of the slot is logged.
ncclResult_t failed(const char* slot, const Error&) noexcept;
/// The same for the exception being handled.
ncclResult_t failed_by_exception(const char* slot) noexcept;

template <class Call>
ncclResult_t guard(const char* slot, Call&& call) noexcept {
  try {
    const Status status = std::forward<Call>(call)();
    if (!status) [[unlikely]]
      return failed(slot, status.error());
    return ncclSuccess;
  } catch (...) {
    return failed_by_exception(slot);
  }
}

/// For slots whose failure would make NCCL leave the rest of a connection uncleaned: the error is logged, and that is all.
template <class Call>
ncclResult_t guard_cleanup(const char* slot, Call&& call) noexcept {
  guard(slot, std::forward<Call>(call));
  return ncclSuccess;
}

}  // namespace gyre::plugin
