#include "perf/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/text.h"

namespace gyre::perf {
namespace {

namespace fs = std::filesystem;

std::optional<uint64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return parse_number(word);  // none: there is no such file, or it says "max"
}

// The number behind a name, as in "MemAvailable:   20413148 kB" and "inactive_file 4096".
std::optional<uint64_t> number_named(const fs::path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    if (word == name && file >> word) return parse_number(word);
  }
  return std::nullopt;
}

// The names of what a version of control groups says of memory.
struct Names {
  const char* limit;
  const char* used;
};

// What a control group and those that it is in have left. Pages of files that nobody has used for a while count as used, and are given up.
std::optional<uint64_t> left_of(const fs::path& mount, fs::path group, const Names& names) {
  std::optional<uint64_t> least;
  for (group = group.relative_path();; group = group.parent_path()) {
    const fs::path folder = mount / group;
    const auto limit = number_in(folder / names.limit);
    const auto used = number_in(folder / names.used);
    if (limit && used) {
      const uint64_t idle = number_named(folder / "memory.stat", "inactive_file").value_or(0);
      const uint64_t taken = *used - std::min(idle, *used);
      least = std::min(least.value_or(UINT64_MAX), *limit - std::min(taken, *limit));
    }
    if (group.empty()) return least;
  }
}

}  // namespace

std::optional<uint64_t> available_memory(const std::string& root) {
  auto least = number_named(root + "/proc/meminfo", "MemAvailable:");
  if (least) *least *= 1024;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b" of version 2, "4:cpu,memory:/a/b" of version 1
    const size_t first = std::min(line.find(':'), line.size());
    const size_t second = std::min(line.find(':', first + 1), line.size());
    if (second == line.size()) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = line.substr(second + 1);
    std::optional<uint64_t> left;
    if (controllers == ",,") left = left_of(root + "/sys/fs/cgroup", group, {"memory.max", "memory.current"});
    if (controllers.find(",memory,") != controllers.npos)
      left = left_of(root + "/sys/fs/cgroup/memory", group, {"memory.limit_in_bytes", "memory.usage_in_bytes"});
    if (left) least = std::min(least.value_or(UINT64_MAX), *left);
  }
  return least;
}

std::optional<uint64_t> largest_that_fits(const std::vector<MemoryOfRank>& ranks, int communicators) {
  struct Host {
    uint64_t ranks = 0;
    uint64_t available = UINT64_MAX;
  };
  std::map<std::string, Host> hosts;
  for (const MemoryOfRank& rank : ranks) {
    Host& host = hosts[rank.host];
    ++host.ranks;
    host.available = std::min(host.available, rank.available.value_or(UINT64_MAX));
  }
  std::optional<uint64_t> least;
  for (const auto& [name, host] : hosts) {
    if (host.available == UINT64_MAX) continue;
    const uint64_t buffers = host.ranks * static_cast<uint64_t>(communicators) * 2;  // an input and an output
    least = std::min(least.value_or(UINT64_MAX), (host.available - host.available / 8) / buffers);
  }
  return least;
}

Result<std::string> fit_to_memory(transport::Bootstrap& bootstrap, const MemoryOfRank& mine, SweepOptions& options) {
  const std::string said = fmt::format("{} {}", mine.available ? std::to_string(*mine.available) : "unknown", mine.host);
  std::vector<MemoryOfRank> ranks;
  for (const std::string& text : GYRE_TRY(bootstrap.all_gather(said))) {
    const size_t blank = std::min(text.find(' '), text.size());
    ranks.push_back({text.substr(blank), parse_number(text.substr(0, blank))});
  }
  const auto fits = largest_that_fits(ranks, options.communicators);
  if (!fits || GYRE_TRY(sizes_of(options)).back() <= *fits) return std::string();
  const std::string why = fmt::format("buffers of more than {} bytes do not fit the memory that is available to all ranks", *fits);
  if (options.min_bytes > *fits) return Error{Code::invalid_argument, fmt::format("-b {}: {}", options.min_bytes, why)};
  options.max_bytes = *fits;
  return fmt::format("maxbytes reduced to {}: {}", *fits, why);
}

}  // namespace gyre::perf
