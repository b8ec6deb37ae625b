// By which address a RoCE port sends. A port has a table of GIDs, one for each address of its network interface and version of RoCE, and
// which of them reaches a peer depends on both ends: an IPv4 address before a global IPv6 one before a link-local one, version 2 (routed,
// over UDP) alone unless NCCL_IB_ROCE_VERSION_NUM says 1. NCCL's variables restrict the choice as they do in NCCL.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace gyre::transport::verbs {

struct Gid {
  enum class Kind : uint8_t { ipv4, ipv6, link_local };
  int index = 0;
  std::array<uint8_t, 16> bytes{};
  int version = 2;  ///< of RoCE
  Kind kind() const;
};
/// "10.0.0.1", "fe80::1"
std::string text(const Gid&);

/// NCCL's variables, as text. Empty: not set.
struct GidFilter {
  std::string index{};    ///< NCCL_IB_GID_INDEX: this one, -1: chosen
  std::string version{};  ///< NCCL_IB_ROCE_VERSION_NUM: 1 or 2
  std::string family{};   ///< NCCL_IB_ADDR_FAMILY: AF_INET, AF_INET6
  std::string range{};    ///< NCCL_IB_ADDR_RANGE: address/prefix
  static GidFilter from_environment();
};

/// The table of a port as the system shows it. Entries without an address are left out.
std::vector<Gid> read_gids(const std::filesystem::path& sysfs, const std::string& device, int port);
/// The error says which variable with which value left none, and what there is.
Result<Gid> choose_gid(const std::vector<Gid>&, const GidFilter&);

// InfiniBand. A GID there is the prefix of its subnet and the port's own number. Routers between subnets that are addressed by LID say so
// in bits 32 to 47 of the prefix (a "floating" LID): packets to that GID go there first.
using GidBytes = std::array<uint8_t, 16>;
/// The first one, or that at NCCL_IB_ROUTABLE_FLID_GID_INDEX (1) where it names a router. All zero: there is none.
Result<Gid> choose_ib_gid(const std::vector<Gid>&);
bool same_subnet(const GidBytes&, const GidBytes&);
uint16_t router_lid(const GidBytes&);  ///< 0: none

}  // namespace gyre::transport::verbs
