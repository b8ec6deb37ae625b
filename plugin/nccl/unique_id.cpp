#include "plugin/nccl/unique_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "plugin/nccl/bell.h"
#include "transport/control.h"
#include "transport/door.h"

namespace gyre::plugin::nccl {
namespace {

struct Id {
  static constexpr std::array<char, 8> expected_magic{'g', 'y', 'r', 'e', '-', 'i', 'd', '1'};
  std::array<char, 8> magic = expected_magic;
  uint64_t job = 0;
  uint16_t port = 0;
  uint16_t given = 0;             ///< 1: by NCCL_COMM_ID
  uint16_t bell = 0;              ///< its port (bell.h); 0: there is none
  std::array<char, 106> hosts{};  ///< with commas; ends in a zero
};
static_assert(sizeof(Id) == sizeof(ncclUniqueId));

/// The second half of an id that NCCL has made.
struct Annex {
  static constexpr std::array<char, 8> expected_magic{'g', 'y', 'r', 'e', '-', 'a', 't', '1'};
  std::array<char, 8> magic = expected_magic;
  uint64_t job = 0;
  uint16_t port = 0;
  std::array<char, 46> hosts{};  ///< with commas; ends in a zero
};
constexpr size_t annex_at = 64;
static_assert(annex_at + sizeof(Annex) == sizeof(ncclUniqueId));

std::optional<Annex> annex_of(const ncclUniqueId& id) {
  Annex annex;
  std::memcpy(&annex, id.internal + annex_at, sizeof annex);
  const bool whole = annex.magic == Annex::expected_magic && annex.hosts.front() != '\0' && annex.hosts.back() == '\0' && annex.port != 0;
  return whole ? std::optional(annex) : std::nullopt;
}

ncclUniqueId as_nccl(const Id& id) { return __builtin_bit_cast(ncclUniqueId, id); }

/// As many of the hosts as there is room for.
void put_hosts(std::span<char> room, std::string_view hosts) {
  const size_t most = room.size() - 1;
  const size_t end = hosts.size() <= most ? hosts.size() : hosts.rfind(',', most);
  hosts = hosts.substr(0, end == std::string_view::npos ? 0 : end);
  std::copy(hosts.begin(), hosts.end(), room.begin());
}

Result<Id> given_id(std::string_view text) {
  const size_t colon = text.rfind(':');
  const auto wrong = [&] { return Error{Code::invalid_argument, fmt::format("NCCL_COMM_ID={}: must be host:port", text)}; };
  if (colon == std::string_view::npos || colon == 0) return wrong();
  std::string_view host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  Id id;
  const auto read = std::from_chars(text.data() + colon + 1, text.data() + text.size(), id.port);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || id.port == 0 || host.size() >= id.hosts.size()) return wrong();
  id.given = 1;
  id.job = fnv1a(text);
  put_hosts(id.hosts, host);
  return id;
}

// Those of ids whose rank 0 has not come yet, by job. Never destroyed: a thread may join while the process ends.
struct Doors {
  struct Kept {
    transport::Door door;
    std::shared_ptr<std::atomic<bool>> taken;
  };
  std::mutex mutex;
  std::map<uint64_t, Kept> open;

  static Doors& of_process() {
    static auto& doors = *new Doors;
    return doors;
  }
  /// `taken` becomes true when it is.
  void keep(uint64_t job, transport::Door door, std::shared_ptr<std::atomic<bool>> taken) {
    const std::lock_guard lock(mutex);
    open.emplace(job, Kept{std::move(door), std::move(taken)});
  }
  std::optional<transport::Door> take(uint64_t job) {
    const std::lock_guard lock(mutex);
    auto node = open.extract(job);
    if (node.empty()) return std::nullopt;
    *node.mapped().taken = true;
    return std::move(node.mapped().door);
  }
};

Error no_address() { return {Code::system, "this host has no network address, not even a loopback's"}; }

// For the other ranks: a door is open before they have the id.
constexpr std::chrono::seconds gone_after{20};

/// Rank 0 meets the others at the door that was opened with the id.
Status open_for_all(Meeting& at) {
  auto door = Doors::of_process().take(at.rendezvous.job);
  if (!door) return Error{Code::invalid_usage, "the unique id was made by another process than rank 0's, or was used before"};
  at.door = transport::PrivateFd(std::move(door->fd));
  at.rendezvous.listen_fd = at.door.get();
  return {};
}

}  // namespace

Result<ncclUniqueId> make_unique_id(bool for_others) {
  if (const char* given = std::getenv("NCCL_COMM_ID"); given != nullptr && *given != '\0') return as_nccl(GYRE_TRY(given_id(given)));
  auto door = GYRE_TRY(transport::open_wide_door());
  Id id;
  id.job = transport::random_number();
  id.port = door.port;
  put_hosts(id.hosts, door.host);
  if (id.hosts[0] == '\0') return no_address();
  const auto taken = std::make_shared<std::atomic<bool>>(false);
  Doors::of_process().keep(id.job, std::move(door), taken);
  if (for_others) id.bell = hang_bell(id.job, taken, [job = id.job] { Doors::of_process().take(job); });
  return as_nccl(id);
}

Result<Meeting> meeting(const ncclUniqueId& given, Rank rank, int ranks) {
  const Id id = __builtin_bit_cast(Id, given);
  if (id.magic != Id::expected_magic || id.hosts.back() != '\0' || id.hosts.front() == '\0' || id.port == 0)
    return Error{Code::invalid_argument, "the unique id is none that gyre has made; do all ranks run with it?"};
  Meeting at{{rank, ranks, id.hosts.data(), id.port}, {}};
  at.rendezvous.job = id.job;
  if (id.given != 0) return at;
  at.rendezvous.gone_after = gone_after;
  if (rank != 0) return at;
  const Status opened = open_for_all(at);
  if (opened) return at;
  at.rendezvous.port = id.bell;
  ring_bell(at.rendezvous);
  return opened.error();
}

void close_door(const ncclUniqueId& id) { Doors::of_process().take(__builtin_bit_cast(Id, id).job); }

Status add_meeting(ncclUniqueId& id) {
  const char* const begin = id.internal + annex_at;
  if (std::any_of(begin, begin + sizeof(Annex), [](char c) { return c != '\0'; }))
    return Error{Code::invalid_usage, "this NCCL uses the bytes of its unique id in which gyre would say where ranks meet"};
  auto door = GYRE_TRY(transport::open_wide_door());
  Annex annex;
  annex.job = transport::random_number();
  annex.port = door.port;
  put_hosts(annex.hosts, door.host);
  if (annex.hosts[0] == '\0') return no_address();
  Doors::of_process().keep(annex.job, std::move(door), std::make_shared<std::atomic<bool>>(false));
  std::memcpy(id.internal + annex_at, &annex, sizeof annex);
  return {};
}

bool has_meeting(const ncclUniqueId& id) { return annex_of(id).has_value(); }

Result<Meeting> added_meeting(const ncclUniqueId& id, Rank rank, int ranks) {
  const auto annex = annex_of(id);
  if (!annex)
    return Error{Code::invalid_usage,
                 "the unique id does not say where: the process that made it has no gyre, or nothing that gives it calls"};
  Meeting at{{rank, ranks, annex->hosts.data(), annex->port}, {}};
  at.rendezvous.job = annex->job;
  at.rendezvous.gone_after = gone_after;
  if (rank == 0) GYRE_TRY(open_for_all(at));
  return at;
}

void close_added_door(const ncclUniqueId& id) {
  if (const auto annex = annex_of(id)) Doors::of_process().take(annex->job);
}

}  // namespace gyre::plugin::nccl
