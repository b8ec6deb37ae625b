// The network interfaces of this machine, as the system lists them.
#include <ifaddrs.h>
#include <net/if.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "base/unique.h"
#include "transport/net_device.h"

namespace gyre::transport {

Result<std::vector<NetMachine::Interface>> read_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return Error{Code::system, "getifaddrs: " + errno_text(errno)};
  const Unique<ifaddrs, freeifaddrs> owner(list);
  std::vector<NetMachine::Interface> interfaces;
  for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const int family = entry->ifa_addr == nullptr ? AF_UNSPEC : entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    NetMachine::Interface i;
    i.name = entry->ifa_name;
    i.address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&i.address.bytes, entry->ifa_addr, i.address.length);
    i.running = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0;
    i.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    interfaces.push_back(std::move(i));
  }
  return interfaces;
}

}  // namespace gyre::transport
