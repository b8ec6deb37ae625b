#include "test/plugin/caller_leaks.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace gyre::test {
namespace {

std::string difference(const std::map<std::string, std::string>& before, const std::map<std::string, std::string>& now, const char* what) {
  std::string left;
  for (const auto& [number, name] : now) {
    const auto found = before.find(number);
    if (found == before.end() || found->second != name) left += std::string(what) + number + " (" + name + ") ";
  }
  return left;
}

}  // namespace

Owned owned_now() {
  Owned owned;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), gone);
    if (!gone && target.string().find("/fd") == std::string::npos) owned.descriptors[entry.path().filename()] = target;
  }
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    if (std::getline(std::ifstream(entry.path() / "comm"), name)) owned.threads[entry.path().filename()] = name;
  }
  return owned;
}

std::string what_is_left(const Owned& before) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (;;) {
    const Owned now = owned_now();
    std::string left = difference(before.descriptors, now.descriptors, "descriptor ") + difference(before.threads, now.threads, "thread ");
    if (left.empty() || std::chrono::steady_clock::now() > until) return left;
    std::this_thread::yield();
  }
}

}  // namespace gyre::test
