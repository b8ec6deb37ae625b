// What a device says by itself: asynchronous events of its ports and queue pairs, as far as somebody can act on them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "transport/verbs/api.h"

namespace gyre::transport::verbs {

struct RailEvent {
  enum class Kind : uint8_t {
    port_down,
    port_up,
    gid_change,    ///< new queue pairs may send by another address
    lid_change,    ///< or something else that the subnet manager has given the port: partition keys, the manager itself
    device_fatal,  ///< nothing of this device works any more
    pair_failed
  };
  Kind kind{};
  uint32_t pair = 0;  ///< the queue pair's number, of pair_failed
  ibv_event_type type{};
};

/// Never blocks: the device's descriptor is not to. What concerns other ports, or nobody, is left out. Allocates only where something came.
std::vector<RailEvent> read_events(ibv_context*, uint8_t port);

/// For a log line, such as "mlx5_0:1: the port is down".
std::string words(const RailEvent&, const std::string& rail);

}  // namespace gyre::transport::verbs
