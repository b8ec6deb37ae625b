// Files that users name.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gyre {

/// All of a regular file (another might have no end) of at most `most_bytes`. Error: invalid_argument and why; the caller knows whose file.
Result<std::string> read_file(const std::string& path, size_t most_bytes);
/// In place of what the file had. Error: system, with `named`, which says what has named the file, its path and why.
Status write_file(const std::string& named, const std::string& path, const std::string& text);
/// For a file that others read while it is written: whole under another name first, then renamed, so that nobody sees half of one. Who may
/// read and write it stays. Error: system, its path and why; what was there before is still there then.
Status replace_file(const std::string& path, std::string_view text);
/// Error: why replace_file couldn't, as far as it can be told before. Changes nothing.
Status check_replace(const std::string& path);

}  // namespace gyre
