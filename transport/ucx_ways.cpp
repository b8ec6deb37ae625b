#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "transport/ucx.h"

namespace gyre::transport {
namespace {

// UCX's transports inside a host, and the names it has for several of them.
struct Local {
  std::string_view name;
  bool carries;          // messages; the others only move data in place
  bool reads_processes;  // by the kernel's leave
  std::array<std::string_view, 3> aliases;
};
constexpr std::array<Local, 8> local_transports{{{"posix", true, false, {"mm", "sm", "shm"}},
                                                 {"sysv", true, false, {"mm", "sm", "shm"}},
                                                 {"xpmem", true, true, {"mm", "sm", "shm"}},
                                                 {"cma", false, true, {"", "sm", "shm"}},
                                                 {"knem", false, true, {"", "sm", "shm"}},
                                                 {"cuda_copy", false, false, {"cuda", "", ""}},
                                                 {"cuda_ipc", false, false, {"cuda", "", ""}},
                                                 {"self", false, false, {"", "", ""}}}};

struct UserTransports {
  bool excludes = false;
  std::vector<std::string_view> names;

  explicit UserTransports(std::string_view tls) {
    excludes = tls.starts_with('^');
    if (excludes) tls.remove_prefix(1);
    while (!tls.empty()) {
      const auto name = tls.substr(0, tls.find(','));
      tls.remove_prefix(std::min(tls.size(), name.size() + 1));
      if (!name.empty()) names.push_back(name);
    }
  }
  bool named(std::string_view name) const { return !name.empty() && std::find(names.begin(), names.end(), name) != names.end(); }
  bool allow_all() const { return names.empty() || (!excludes && named("all")); }
  bool allow(const Local& t) const {
    const bool listed = named(t.name) || std::any_of(t.aliases.begin(), t.aliases.end(), [&](auto alias) { return named(alias); });
    return allow_all() || listed != excludes;
  }
  bool allow_network() const {
    const auto local = [](std::string_view name) {
      return std::any_of(local_transports.begin(), local_transports.end(), [&](const Local& t) {
        return t.name == name || std::find(t.aliases.begin(), t.aliases.end(), name) != t.aliases.end();
      });
    };
    return names.empty() || excludes || !std::all_of(names.begin(), names.end(), local);
  }
};

// Empty: nothing that carries messages is allowed.
std::string local_list(const UserTransports& user, bool reads_processes, bool cuda) {
  // By UCX's names for several: it takes amiss single ones that this machine does not have.
  if (user.allow_all()) return fmt::format("{},self{}", reads_processes ? "sm" : "posix,sysv", cuda ? ",cuda" : "");
  std::vector<std::string_view> list;
  bool carries = false;
  for (const Local& t : local_transports) {
    if (!user.allow(t) || (t.reads_processes && !reads_processes) || (t.name.starts_with("cuda") && !cuda)) continue;
    list.push_back(t.name);
    carries |= t.carries;
  }
  return carries ? fmt::format("{}", fmt::join(list, ",")) : "";
}

}  // namespace

std::vector<UcxWay> ucx_ways(const std::vector<std::string>& devices) {
  const char* tls = std::getenv("UCX_TLS");
  const UserTransports user(tls != nullptr ? tls : "");
  const bool cuda = ucx_memory().cuda;
  std::vector<UcxWay> ways;
  const auto in_place = local_list(user, true, cuda), by_copies = local_list(user, false, cuda);
  if (!in_place.empty() && in_place != by_copies) ways.push_back({"shared memory", {}, 1, in_place, true, true});
  if (!by_copies.empty()) ways.push_back({"shared memory by copies", {}, 1, by_copies, true, false});
  if (user.allow_network()) ways.push_back({"network", fmt::format("{}", fmt::join(devices, ",")), devices.size()});
  return ways;
}

}  // namespace gyre::transport
