#include "transport/net_filter.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/log.h"

namespace gyre::transport {
namespace {

constexpr size_t max_interfaces = 16;  // NCCL's MAX_IFS

/// Takes the text up to the separator off `rest`.
std::string_view take_field(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const auto field = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return field;
}

bool take_sign(std::string_view& text, char sign) {
  if (!text.starts_with(sign)) return false;
  text.remove_prefix(1);
  return true;
}

/// As C's atoi has it, with which NCCL reads: 0 for junk. Empty: any.
int leading_number(std::string_view text) {
  if (text.empty()) return -1;
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int wanted_family(const NetFilter& filter) {
  if (filter.socket_family == "AF_INET") return AF_INET;
  if (filter.socket_family == "AF_INET6") return AF_INET6;
  return AF_UNSPEC;
}

bool has_usable_address(const NetMachine::Interface& i, int family) {
  const auto own = i.address.bytes.ss_family;
  if (!i.running || i.address.length == 0 || (own != AF_INET && own != AF_INET6)) return false;
  if (family != AF_UNSPEC && own != family) return false;
  if (own == AF_INET) return true;
  return !IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&i.address.bytes)->sin6_addr);
}

std::vector<NetMachine::Interface> accepted_interfaces(std::span<const NetMachine::Interface> all, std::string_view list, int family) {
  const NameList names(list);
  std::vector<NetMachine::Interface> taken;
  for (const auto& i : all) {
    if (taken.size() == max_interfaces) break;
    if (!has_usable_address(i, family) || !names.accepts(i.name)) continue;
    if (std::ranges::find(taken, i.name, &NetMachine::Interface::name) == taken.end()) taken.push_back(i);
  }
  return taken;
}

/// As NCCL reads its numbers: in C's notation, whatever follows.
std::optional<long long> c_number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 0);
  return end != text.c_str() && errno == 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

NameList::NameList(std::string_view text) {
  exclude_ = take_sign(text, '^');
  exact_ = take_sign(text, '=');
  if (!take_sign(text, '^')) take_sign(text, '=');  // NCCL overlooks one more
  while (!text.empty()) {
    auto one = take_field(text, ',');
    Entry entry;
    entry.name = take_field(one, ':');
    entry.port = leading_number(take_field(one, ':'));
    entry.rail = leading_number(take_field(one, ':'));
    entry.plane = leading_number(take_field(one, ':'));
    if (!entry.name.empty()) entries_.push_back(std::move(entry));
  }
}

const NameList::Entry* NameList::find(std::string_view name, int port) const {
  const auto fits = [&](const Entry& e) {
    return (exact_ ? name == e.name : name.starts_with(e.name)) && (port == -1 || e.port == -1 || port == e.port);
  };
  const auto found = std::ranges::find_if(entries_, fits);
  return found == entries_.end() ? nullptr : &*found;
}

std::vector<NetMachine::Interface> choose_interfaces(std::span<const NetMachine::Interface> all, const NetFilter& filter) {
  const int family = wanted_family(filter);
  if (names_interfaces(filter)) return accepted_interfaces(all, filter.socket_ifname, family);
  for (const char* list : {"ib", "^docker,lo,virbr", "docker", "lo", "virbr"})
    if (auto taken = accepted_interfaces(all, list, family); !taken.empty()) return taken;
  return {};
}

std::string interface_rules(const NetFilter& filter) {
  std::string rules = names_interfaces(filter) ? "NCCL_SOCKET_IFNAME=" + filter.socket_ifname : "";
  if (wanted_family(filter) != AF_UNSPEC)
    rules += (rules.empty() ? "NCCL_SOCKET_FAMILY=" : " and NCCL_SOCKET_FAMILY=") + filter.socket_family;
  return rules;
}

bool rdma_disabled(const NetFilter& filter) { return c_number(filter.ib_disable).value_or(0) != 0; }

void warn_of_ignored(const NetFilter& filter) {
  if (!filter.socket_family.empty() && wanted_family(filter) == AF_UNSPEC)
    log::warn("NCCL_SOCKET_FAMILY={} is neither AF_INET nor AF_INET6 and is ignored, as NCCL does", filter.socket_family);
  if (!filter.ib_disable.empty() && !c_number(filter.ib_disable))
    log::warn("NCCL_IB_DISABLE={} is no number and is ignored, as NCCL does", filter.ib_disable);
}

}  // namespace gyre::transport
