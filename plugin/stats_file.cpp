#include "plugin/stats_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/text.h"
#include "base/unique.h"

namespace gyre::plugin {
namespace {

/// 0, or errno.
int write_new(const std::string& path, std::string_view text) {
  // Somebody else's link under this name is not followed.
  ::unlink(path.c_str());
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd) return errno;
  while (!text.empty()) {
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace

std::string stats_path(std::string_view pattern, std::string_view host, uint32_t pid) {
  std::string path;
  bool has_pid = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char letter = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (letter == 'h')
      path += host;
    else if (letter == 'p')
      path += fmt::format("{}", pid), has_pid = true;
    else if (letter == '%')
      path += '%';
    else {
      path += pattern[i];
      continue;
    }
    ++i;
  }
  if (!has_pid) path += fmt::format(".{}", pid);
  std::error_code unknown;  // the folder that we are in may be gone
  const auto from_root = std::filesystem::absolute(path, unknown);
  return unknown ? path : from_root.string();
}

Status replace_file(const std::string& path, std::string_view text) {
  // Not at the end: Prometheus' collector takes whatever ends in .prom.
  const std::string whole = path + ".new";
  int error = write_new(whole, text);
  if (error == 0 && std::rename(whole.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(whole.c_str());
  return Error{Code::system, fmt::format("{}: {}", path, errno_text(error))};
}

}  // namespace gyre::plugin
