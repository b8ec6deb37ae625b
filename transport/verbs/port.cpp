#include "transport/verbs/port.h"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/net_sysfs.h"
#include "base/text.h"

namespace gyre::transport::verbs {
namespace {

// Of InfiniBand's PortPhysicalState, which Ethernet uses too.
constexpr uint8_t polling = 2, disabled = 3;

const char* state_word(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_INIT:
      return "initializing";
    case IBV_PORT_ARMED:
      return "armed";
    case IBV_PORT_ACTIVE:
      return "active";
    default:
      return "down";
  }
}

std::string how_to_activate(const Port& port, const sysfs::RdmaPort& shown) {
  const auto& attributes = port.attributes;
  if (port.ethernet()) {
    const std::string interface = shown.interfaces.empty() ? "its-interface" : shown.interfaces.front();
    return fmt::format("is its cable plugged in? Else: ip link set {} up", interface);
  }
  if (attributes.state == IBV_PORT_INIT || attributes.state == IBV_PORT_ARMED)
    return "the link is up, but no subnet manager has given the port an address; on one host or switch of the fabric: systemctl start "
           "opensm";
  if (attributes.phys_state == disabled) return "it was disabled; ibportstate enables it";
  if (attributes.phys_state == polling) return "there is no link: is the cable plugged in, and the port at its other end on?";
  return "ibstat and the switch's log may say why";
}

Status query(ibv_context* context, uint8_t number, ibv_port_attr& attributes) {
  attributes = {};
  // Only the newer form of this call, which is the device's own, fills the last fields.
  auto* newer = verbs_get_ctx(context);
  const bool has_it = newer && newer->sz >= sizeof *newer - offsetof(verbs_context, query_port) && newer->query_port;
  const int error = has_it ? newer->query_port(context, number, &attributes, sizeof attributes)
                           : api().query_port(context, number, reinterpret_cast<_compat_ibv_port_attr*>(&attributes));
  if (error != 0) return Error{Code::system, fmt::format("ibv_query_port: {}", errno_text(error))};
  return {};
}

}  // namespace

int mbit_per_s(uint8_t width, uint8_t speed) {
  const auto lanes = [&] {
    switch (width) {
      case 1:
        return 1;
      case 2:
        return 4;
      case 4:
        return 8;
      case 8:
        return 12;
      case 16:
        return 2;
      default:
        return 0;
    }
  }();
  switch (speed) {
    case 1:  // SDR
      return lanes * 2'500;
    case 2:  // DDR
      return lanes * 5'000;
    case 4:  // QDR
    case 8:  // FDR10
      return lanes * 10'000;
    case 16:  // FDR
      return lanes * 14'000;
    case 32:  // EDR
      return lanes * 25'000;
    case 64:  // HDR
      return lanes * 50'000;
    case 128:  // NDR
      return lanes * 100'000;
    default:
      return 0;
  }
}

Result<Port> Port::read(ibv_context* context, const std::string& device, uint8_t number, const std::filesystem::path& sysfs) {
  Port port;
  GYRE_TRY(query(context, number, port.attributes));
  const auto shown = sysfs::rdma_port(sysfs, device, number);
  if (port.attributes.state != IBV_PORT_ACTIVE)
    return Error{Code::system,
                 fmt::format("the port is {}, not active: {}", state_word(port.attributes.state), how_to_activate(port, shown))};
  // The code of speed has no room for what is faster than NDR; the system's own words do.
  port.mbit_per_s = std::max(verbs::mbit_per_s(port.attributes.active_width, port.attributes.active_speed), shown.mbit_per_s);
  const auto gids = read_gids(sysfs, device, number);
  port.gid = port.ethernet() ? GYRE_TRY(choose_gid(gids, GidFilter::from_environment())) : GYRE_TRY(choose_ib_gid(gids));
  return port;
}

std::string describe(const Port& port) {
  const std::string speed = port.mbit_per_s == 0 ? "speed unknown" : fmt::format("{} Mbit/s", port.mbit_per_s);
  if (port.ethernet()) return fmt::format("{}, RoCE v{} {}, index {}", speed, port.gid.version, text(port.gid), port.gid.index);
  return fmt::format("{}, InfiniBand LID {}", speed, port.attributes.lid);
}

Result<uint16_t> pkey_index(ibv_context* context, uint8_t number, const Port& port, const PathOptions& options) {
  constexpr uint16_t partition = 0x7fff;  // the bit above tells full from limited members
  std::string table;
  for (uint16_t i = 0; i < port.attributes.pkey_tbl_len; ++i) {
    uint16_t key = 0;
    if (api().query_pkey(context, number, i, &key) != 0) continue;
    key = be16toh(key);
    if ((key & partition) == 0) continue;  // empty
    if (options.pkey_value ? (*options.pkey_value & partition) == (key & partition) : options.pkey_index == i) return i;
    table += fmt::format("{}{}: {:#x}", table.empty() ? "" : ", ", i, key);
  }
  const std::string wanted =
      options.pkey_value ? fmt::format("NCCL_IB_PKEY_VALUE={:#x} is not in the port's table of partition keys", *options.pkey_value)
                         : fmt::format("NCCL_IB_PKEY={} is no index in use of the port's table of partition keys", options.pkey_index);
  return Error{Code::invalid_usage, fmt::format("{}, which has {}", wanted, table.empty() ? "none" : table)};
}

}  // namespace gyre::transport::verbs
