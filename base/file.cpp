#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "base/unique.h"

namespace gyre {
namespace {

// Not at the end: Prometheus' collector takes whatever ends in .prom.
std::string name_in_between(const std::string& path) { return path + ".new"; }

/// 0, or errno. `like`: the file whose mode it gets, if there is one.
int write_new(const std::string& path, std::string_view text, const std::string& like) {
  // Somebody else's link under this name is not followed.
  ::unlink(path.c_str());
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd) return errno;
  constexpr mode_t permissions = 0777;
  if (struct stat file{}; ::stat(like.c_str(), &file) == 0 && ::fchmod(fd.get(), file.st_mode & permissions) != 0) return errno;
  while (!text.empty()) {
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace

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

Status replace_file(const std::string& path, std::string_view text) {
  const std::string whole = name_in_between(path);
  int error = write_new(whole, text, path);
  if (error == 0 && std::rename(whole.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(whole.c_str());
  return Error{Code::system, fmt::format("{}: {}", path, errno_text(error))};
}

Status check_replace(const std::string& path) {
  const std::string whole = name_in_between(path);
  int error = path.empty() ? ENOENT : write_new(whole, "", path);
  ::unlink(whole.c_str());
  if (error == 0 && ::access(path.c_str(), W_OK) != 0 && errno != ENOENT) error = errno;
  if (std::error_code none; error == 0 && std::filesystem::is_directory(path, none)) error = EISDIR;
  return error == 0 ? Status() : Error{Code::system, fmt::format("{}: {}", path, errno_text(error))};
}

}  // namespace gyre
