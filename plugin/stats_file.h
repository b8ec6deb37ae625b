// Where a process writes its counters.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace gyre::plugin {

/// GYRE_STATS as a path from the root: %h is the host, %p the process, %% a %. The ranks of a host share their environment, so the process
/// is added at the end where the name lacks it.
std::string stats_path(std::string_view pattern, std::string_view host, uint32_t pid);

}  // namespace gyre::plugin
