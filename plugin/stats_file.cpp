#include "plugin/stats_file.h"

#include <fmt/format.h>

#include <filesystem>

namespace gyre::plugin {

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

}  // namespace gyre::plugin
