#include "transport/verbs/gid.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/sysfs.h"

namespace gyre::transport::verbs {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

using sysfs::first_line;

/// As 128 bits: of IPv4 the mapped ones.
struct Prefix {
  std::array<uint8_t, 16> address{};
  int bits = 0;
  bool holds(const Gid& gid) const {
    for (int bit = 0; bit < bits; ++bit) {
      const auto byte = static_cast<size_t>(bit / 8);
      const int mask = 0x80 >> bit % 8;
      if ((gid.bytes[byte] & mask) != (address[byte] & mask)) return false;
    }
    return true;
  }
};

Result<Prefix> parse_range(const std::string& text) {
  const auto slash = text.find('/');
  const int bits = slash == std::string::npos ? -1 : number(std::string_view(text).substr(slash + 1)).value_or(-1);
  Prefix range;
  in_addr v4{};
  const std::string address = text.substr(0, slash);
  const bool is_v4 = inet_pton(AF_INET, address.c_str(), &v4) == 1;
  const bool is_v6 = inet_pton(AF_INET6, address.c_str(), range.address.data()) == 1;
  if (bits < 0 || bits > (is_v4 ? 32 : 128) || !(is_v4 || is_v6))
    return Error{Code::invalid_usage, fmt::format("NCCL_IB_ADDR_RANGE={} is no address/prefix, such as 10.0.0.0/8", text)};
  range.bits = bits;
  if (is_v4) {
    range.address = {};
    range.address[10] = range.address[11] = 0xff;
    std::memcpy(range.address.data() + 12, &v4, 4);
    range.bits += 96;
  }
  return range;
}

std::string listed(const std::vector<Gid>& gids) {
  std::string all;
  for (const Gid& gid : gids) all += fmt::format("{}{}: {} (RoCE v{})", all.empty() ? "" : ", ", gid.index, text(gid), gid.version);
  return all.empty() ? "none" : all;
}

}  // namespace

Gid::Kind Gid::kind() const {
  constexpr std::array<uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::equal(mapped.begin(), mapped.end(), bytes.begin())) return Kind::ipv4;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80 ? Kind::link_local : Kind::ipv6;
}

std::string text(const Gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v4 = gid.kind() == Gid::Kind::ipv4;
  return inet_ntop(v4 ? AF_INET : AF_INET6, gid.bytes.data() + (v4 ? 12 : 0), text.data(), text.size());
}

GidFilter GidFilter::from_environment() {
  return {variable("NCCL_IB_GID_INDEX"), variable("NCCL_IB_ROCE_VERSION_NUM"), variable("NCCL_IB_ADDR_FAMILY"),
          variable("NCCL_IB_ADDR_RANGE")};
}

std::vector<Gid> read_gids(const std::filesystem::path& sysfs, const std::string& device, int port) {
  const auto folder = sysfs / "class/infiniband" / device / "ports" / std::to_string(port);
  std::vector<Gid> gids;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "gids", none)) {
    const auto index = number(entry.path().filename().string());
    Gid gid;
    if (!index || inet_pton(AF_INET6, first_line(entry.path()).c_str(), gid.bytes.data()) != 1) continue;
    // Without an address: all zero, or the prefix of link-local ones alone.
    if (std::all_of(gid.bytes.begin() + 8, gid.bytes.end(), [](uint8_t byte) { return byte == 0; })) continue;
    gid.index = *index;
    gid.version = first_line(folder / "gid_attrs/types" / std::to_string(*index)) == "RoCE v2" ? 2 : 1;
    gids.push_back(gid);
  }
  std::sort(gids.begin(), gids.end(), [](const Gid& a, const Gid& b) { return a.index < b.index; });
  return gids;
}

Result<Gid> choose_gid(const std::vector<Gid>& gids, const GidFilter& filter) {
  const auto wrong = [](const char* name, const std::string& value, const char* right) {
    return Error{Code::invalid_usage, fmt::format("{}={} is not {}", name, value, right)};
  };
  const auto index = filter.index.empty() ? std::optional(-1) : number(filter.index);
  if (!index || *index < -1) return wrong("NCCL_IB_GID_INDEX", filter.index, "a number, or -1");
  if (!filter.version.empty() && filter.version != "1" && filter.version != "2")
    return wrong("NCCL_IB_ROCE_VERSION_NUM", filter.version, "1 or 2");
  if (!filter.family.empty() && filter.family != "AF_INET" && filter.family != "AF_INET6")
    return wrong("NCCL_IB_ADDR_FAMILY", filter.family, "AF_INET or AF_INET6");
  const Prefix range = filter.range.empty() ? Prefix{} : GYRE_TRY(parse_range(filter.range));
  const int version = filter.version == "1" ? 1 : 2;

  const Gid* best = nullptr;
  for (const Gid& gid : gids) {
    if (*index >= 0) {
      if (gid.index == *index) return gid;
      continue;
    }
    const bool v4 = gid.kind() == Gid::Kind::ipv4;
    if (gid.version != version || !range.holds(gid) || (!filter.family.empty() && v4 != (filter.family == "AF_INET"))) continue;
    if (best == nullptr || gid.kind() < best->kind()) best = &gid;
  }
  if (best != nullptr) return *best;
  std::string why;
  const std::pair<const char*, const std::string*> all[] = {{"NCCL_IB_GID_INDEX", &filter.index},
                                                            {"NCCL_IB_ROCE_VERSION_NUM", &filter.version},
                                                            {"NCCL_IB_ADDR_FAMILY", &filter.family},
                                                            {"NCCL_IB_ADDR_RANGE", &filter.range}};
  for (const auto& [name, value] : all)
    if (!value->empty()) why += fmt::format(" {}={}", name, *value);
  return Error{Code::invalid_usage, fmt::format("no address of the port fits{}; it has {}", why.empty() ? " RoCE v2" : why, listed(gids))};
}

Result<Gid> choose_ib_gid(const std::vector<Gid>& gids) {
  const std::string value = variable("NCCL_IB_ROUTABLE_FLID_GID_INDEX");
  const auto routed = value.empty() ? std::optional(1) : number(value);
  if (!routed) return Error{Code::invalid_usage, fmt::format("NCCL_IB_ROUTABLE_FLID_GID_INDEX={} is not a number", value)};
  for (const Gid& gid : gids)
    if (gid.index == *routed && router_lid(gid.bytes) != 0) return gid;
  return gids.empty() || gids.front().index != 0 ? Gid{} : gids.front();
}

bool same_subnet(const GidBytes& a, const GidBytes& b) {
  return std::equal(a.begin(), a.begin() + 4, b.begin()) && std::equal(a.begin() + 6, a.begin() + 8, b.begin() + 6);
}
uint16_t router_lid(const GidBytes& gid) { return static_cast<uint16_t>(gid[4] << 8 | gid[5]); }

}  // namespace gyre::transport::verbs
