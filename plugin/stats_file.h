// Files that others read while they are written: whole under another name first, then renamed, so that nobody sees half of one.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gyre::plugin {

/// GYRE_STATS as a path from the root: %h is the host, %p the process, %% a %. The ranks of a host share their environment, so the process
/// is added at the end where the name lacks it.
std::string stats_path(std::string_view pattern, std::string_view host, uint32_t pid);

/// The error names file and cause; what was there before is still there then.
Status replace_file(const std::string& path, std::string_view text);

}  // namespace gyre::plugin
