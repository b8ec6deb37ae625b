#include "plugin/nccl/conf_files.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "base/log.h"

namespace gyre::plugin::nccl {
namespace {

/// By the system's list of users, whatever HOME says; empty: it has none.
std::string home_of_user() {
  std::array<char, 4096> room;
  passwd user{};
  passwd* found = nullptr;
  ::getpwuid_r(::getuid(), &user, room.data(), room.size(), &found);
  return found != nullptr && found->pw_dir != nullptr ? found->pw_dir : "";
}

// No blanks are passed over, and a value may have a =.
void set_by_line(const std::string& line, const std::string& file) {
  const size_t equals = line.find('=');
  if (line.starts_with('#') || equals == std::string::npos) return;
  const std::string name = line.substr(0, equals);
  if (std::getenv(name.c_str()) != nullptr || ::setenv(name.c_str(), line.c_str() + equals + 1, 0) != 0) return;
  log::info("{} has {}", file, line);
}

}  // namespace

std::vector<std::string> conf_files(const std::string& home) {
  std::vector<std::string> files;
  const char* const named = std::getenv("NCCL_CONF_FILE");
  if (named != nullptr && *named != '\0')
    files.emplace_back(named);
  else if (!home.empty())
    files.push_back(home + "/.nccl.conf");
  files.emplace_back("/etc/nccl.conf");
  return files;
}

std::vector<std::string> conf_files() { return conf_files(home_of_user()); }

void set_by_files(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) set_by_line(line, file);
  }
}

}  // namespace gyre::plugin::nccl
