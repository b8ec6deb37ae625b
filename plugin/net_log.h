// base/log's lines on their way to NCCL's logger, which filters them by NCCL_DEBUG and ends each line itself. NCCL gives a logger to each
// init, and several copies of NCCL may do so; the last one is used. Without one, lines go to stderr. Safe from any thread.
#pragma once
#include "plugin/guard.h"

namespace gyre::plugin {

/// An init came with this logger (or null). Information is logged where there is one, unless GYRE_LOG says otherwise.
void start_log(ncclDebugLogger_t) noexcept;
/// A finalize. After as many of them as inits, lines go to stderr: the library that the logger is in may be closed then.
/// Tables that have no finalize never call it, and so keep the logger.
void end_log() noexcept;

/// An error of a slot, with the place where it was first seen.
void report(const char* slot, const char* what, const char* file, int line) noexcept;

/// The slot init of every version: what is called is logged to NCCL already. Nothing finalizes what could not be started.
template <class Call>
ncclResult_t logged_init(const char* slot, ncclDebugLogger_t logger, Call&& call) {
  start_log(logger);
  const ncclResult_t result = guard(slot, call);
  if (result != ncclSuccess) end_log();
  return result;
}

}  // namespace gyre::plugin
