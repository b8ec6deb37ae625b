#include "base/file.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"

namespace gyre {

Result<std::string> read_file(const std::string& path, size_t most_bytes) {
  const auto refused = [](std::string why) { return Error{Code::invalid_argument, std::move(why)}; };
  std::error_code none;
  if (std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none)) return refused("no regular file");
  if (const auto bytes = std::filesystem::file_size(path, none); !none && bytes > most_bytes)
    return refused(fmt::format("{} bytes, must be {} at most", bytes, most_bytes));
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  // Of an empty file nothing is written, which fails, too.
  if (!in.is_open() || in.bad() || (!text && errno != 0)) return refused(errno == 0 ? "can't be read" : errno_text(errno));
  return std::move(text).str();
}

Status write_file(const std::string& named, const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? Status() : Error{Code::system, fmt::format("{} {}: {}", named, path, errno_text(errno))};
}

}  // namespace gyre
