// A connection as the plugin tells of one.
#pragma once
#include <string>

#include "plugin/stats_text.h"

namespace gyre::test {

inline plugin::ConnectionStats to_peer(std::string peer) {
  plugin::ConnectionStats about;
  about.direction = "send";
  about.device = "eth0";
  about.way = "tcp";
  about.peer = std::move(peer);
  about.address = "10.0.0.2:1";
  return about;
}

}  // namespace gyre::test
