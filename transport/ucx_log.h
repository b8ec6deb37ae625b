// UCX's own messages go where gyre's go: UCX writes them to stdout, into the tables of the programs that use it.
#pragma once

namespace gyre::transport::ucx {

/// From now on in this process; nothing where the user has set UCX_LOG_LEVEL or UCX_LOG_FILE. May be called again, by any thread.
void route_log();

}  // namespace gyre::transport::ucx
