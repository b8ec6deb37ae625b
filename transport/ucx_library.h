// Finds and opens a library of UCX's. Where the program has another UCX among its global symbols (linked into it, or a library of another
// name), the calls that ours makes within itself would go there: then ours is opened so that it prefers its own symbols. Knows UCX's
// names of files only, not its functions.
#pragma once
#include <span>
#include <string>

#include "base/result.h"

namespace gyre::transport::ucx {

/// libucp.so.0, never to be closed: UCX leaves hooks in the process. One that is loaded already is taken. `functions`: names by which
/// another UCX is recognized.
Result<void*> open_library(std::span<const char* const> functions);

/// Before UCX reads its options: a UCX that prefers its own symbols has a variable `environ` of libc's that libc may have stopped to use.
void renew_environment();

/// The file that this function or object lies in.
std::string file_of(const void* symbol);
std::string file_of_library(void* library);

}  // namespace gyre::transport::ucx
