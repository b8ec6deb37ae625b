// What a port of an RDMA device is like now: its state, its address, its speed. Read when a rail is opened and whenever an event says that
// it has changed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "transport/verbs/api.h"
#include "transport/verbs/gid.h"
#include "transport/verbs/options.h"

namespace gyre::transport::verbs {

struct Port {
  ibv_port_attr attributes{};
  Gid gid;             ///< by which it sends; all zero: the system shows none, which InfiniBand can do without
  int mbit_per_s = 0;  ///< 0: unknown

  bool ethernet() const { return attributes.link_layer == IBV_LINK_LAYER_ETHERNET; }

  /// Of an open device. The error of a port that is not active, or has no fitting address, says what would mend it.
  static Result<Port> read(ibv_context*, const std::string& device, uint8_t number, const std::filesystem::path& sysfs);
};

/// Lanes times speed of each, from the codes that ports give. 0: a code that is not known.
int mbit_per_s(uint8_t width, uint8_t speed);

/// "100000 Mbit/s, RoCE v2 10.0.0.1, index 3", "200000 Mbit/s, InfiniBand LID 7"
std::string describe(const Port&);

/// Of the port's table of partition keys, as NCCL_IB_PKEY_VALUE or NCCL_IB_PKEY say. The error shows the table.
Result<uint16_t> pkey_index(ibv_context*, uint8_t number, const Port&, const PathOptions&);

}  // namespace gyre::transport::verbs
