#include "plugin/guard.h"

#include <exception>
#include <new>

#include "plugin/net_log.h"

namespace gyre::plugin {

// Equal by design, but for timeout, which is new in 2.30, and which neither NCCL takes from a plugin nor an older program from NCCL.
// Whoever did not answer in time is a peer.
ncclResult_t nccl_result(Code code) noexcept {
  switch (code) {
    case Code::cuda:
    case Code::system:
    case Code::internal:
    case Code::invalid_argument:
    case Code::invalid_usage:
    case Code::remote:
      return static_cast<ncclResult_t>(code);
    case Code::timeout:
      return ncclRemoteError;
  }
  return ncclInternalError;
}

ncclResult_t failed(const char* slot, const Error& error) noexcept {
  report(slot, error.what.c_str(), error.file, error.line);
  return nccl_result(error.code);
}

ncclResult_t failed_by_exception(const char* slot) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    report(slot, "no memory is left", __FILE__, __LINE__);
    return ncclSystemError;
  } catch (const std::exception& exception) {
    report(slot, exception.what(), __FILE__, __LINE__);
  } catch (...) {
    report(slot, "an exception of an unknown kind", __FILE__, __LINE__);
  }
  return ncclInternalError;
}

}  // namespace gyre::plugin
