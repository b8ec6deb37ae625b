// UCX's own messages go where gyre's go, as long as gyre has a UCX context: UCX writes them to stdout, into the tables of the programs that
// use it. Other users of the same UCX in the process have theirs back when the last of our contexts is closed.
#pragma once

namespace gyre::transport::ucx {

/// Before a context is opened; nothing where the user has set UCX_LOG_LEVEL or UCX_LOG_FILE. Both under the lock of contexts.
void route_log();
/// After a context was closed, or could not be opened.
void unroute_log();

}  // namespace gyre::transport::ucx
