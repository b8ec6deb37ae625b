#include "transport/ucx_selection.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gyre::transport::ucx {
namespace {

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// UCX's families: sm, shm and mm for the memory of a host, ib for all of RDMA; rc, ud, dc and others stand for what begins with them,
/// and _v and _x for the two ways to drive a NIC: rc_v is rc_verbs, rc_x is rc_mlx5.
bool in_family(std::string_view transport, std::string_view family) {
  const size_t bar = transport.find('_');
  const auto stem = transport.substr(0, bar);
  if (is_one_of(family, {"sm", "shm"})) return is_one_of(transport, {"posix", "sysv", "xpmem", "knem", "cma"});
  if (family == "mm") return is_one_of(transport, {"posix", "sysv", "xpmem"});
  if (bar == std::string_view::npos) return false;
  if (family == "ib") return is_one_of(stem, {"rc", "ud", "dc"});
  const auto way = transport.substr(bar);
  return family == stem ||
         (family.starts_with(stem) && ((way == "_verbs" && family.substr(bar) == "_v") || (way == "_mlx5" && family.substr(bar) == "_x")));
}

/// A backslash before it makes a name a transport's own, also where a family is called so. What is followed by :aux is for connecting only.
bool stands_for(std::string_view word, std::string_view transport) {
  if (word.starts_with('\\')) return word.substr(1) == transport;
  return word == transport || in_family(transport, word);
}

}  // namespace

Selection::Selection(std::string transports, std::string devices)
    : transports_text_(std::move(transports)), devices_text_(std::move(devices)) {
  exclude_ = transports_text_.starts_with('^');
  transports_ = split_list(std::string_view(transports_text_).substr(exclude_ ? 1 : 0));
  devices_ = split_list(devices_text_);
}

bool Selection::allows_transport(std::string_view transport) const {
  const auto named = [&](std::string_view word) { return word == "all" || stands_for(word, transport); };
  if (transports_.empty()) return true;
  return std::ranges::any_of(transports_, named) != exclude_;
}

bool Selection::allows_device(std::string_view device) const {
  return devices_.empty() || std::ranges::any_of(devices_, [&](std::string_view word) { return word == "all" || word == device; });
}

}  // namespace gyre::transport::ucx
