// Files that users name.
#pragma once
#include <cstddef>
#include <string>

#include "base/result.h"

namespace gyre {

/// All of a regular file (another might have no end) of at most `most_bytes`. Error: invalid_argument and why; the caller knows whose file.
Result<std::string> read_file(const std::string& path, size_t most_bytes);

}  // namespace gyre
