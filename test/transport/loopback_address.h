// 127.0.0.x, for tests that listen.
#pragma once
#include <netinet/in.h>

#include <cstring>

#include "transport/net_device.h"

namespace gyre::test {

inline transport::SocketAddress loopback_address(uint8_t last, uint16_t port = 0) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK & ~0xffU) | htonl(last);
  transport::SocketAddress address;
  std::memcpy(&address.bytes, &v4, address.length = sizeof v4);
  return address;
}

}  // namespace gyre::test
