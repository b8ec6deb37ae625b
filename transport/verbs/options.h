// NCCL's variables for InfiniBand and RoCE, by NCCL's names, meanings and defaults. A value that is out of its range is an error that says
// so.
#pragma once
#include <cstdint>
#include <optional>

#include "base/result.h"

namespace gyre::transport::verbs {

/// How packets go.
struct PathOptions {
  uint8_t timeout = 20;                    ///< NCCL_IB_TIMEOUT: an acknowledgement is awaited for 4.096 us times 2 to this, 0: for ever
  uint8_t retries = 7;                     ///< NCCL_IB_RETRY_CNT: times that a packet is sent again
  uint8_t service_level = 0;               ///< NCCL_IB_SL
  uint8_t traffic_class = 0;               ///< NCCL_IB_TC
  uint16_t pkey_index = 0;                 ///< NCCL_IB_PKEY: an index of the port's table
  std::optional<uint16_t> pkey_value;      ///< NCCL_IB_PKEY_VALUE: a key of that table, before the index
  bool relaxed_ordering = true;            ///< NCCL_IB_PCI_RELAXED_ORDERING: 0 never, 1 and 2 where libibverbs and the device know it
  bool relaxed_ordering_demanded = false;  ///< 1: a libibverbs that does not know it is an error
  std::optional<bool> adaptive_routing;    ///< NCCL_IB_ADAPTIVE_ROUTING: 0, 1; empty: on for InfiniBand, off for RoCE
  uint32_t adaptive_threshold = 8192;      ///< NCCL_IB_AR_THRESHOLD: bytes, above which adaptive routing matters
  uint8_t pairs = 1;                       ///< NCCL_IB_QPS_PER_CONNECTION: queue pairs of a connection on each port

  static Result<PathOptions> from_environment();
};

}  // namespace gyre::transport::verbs
