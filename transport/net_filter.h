// Names as NCCL's variables choose them: [^][=]name[:port[:rail[:plane]]],… A name is a prefix, or with = the whole; ^ takes all others.
// And the network interfaces that NCCL would take. Knows nothing of sysfs and UCX.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/net_device.h"

namespace gyre::transport {

class NameList {
 public:
  struct Entry {
    std::string name;
    int port = -1, rail = -1, plane = -1;  ///< -1: any, or not said
  };
  explicit NameList(std::string_view text);
  /// Port -1: of no matter. An empty list accepts everything, and with ^ nothing.
  bool accepts(std::string_view name, int port = -1) const { return (entries_.empty() || find(name, port) != nullptr) != exclude_; }
  /// The first entry that fits, whatever ^ makes of it.
  const Entry* find(std::string_view name, int port) const;

 private:
  bool exclude_ = false, exact_ = false;
  std::vector<Entry> entries_;
};

/// NCCL takes no value of one letter for NCCL_SOCKET_IFNAME.
inline bool names_interfaces(const NetFilter& filter) { return filter.socket_ifname.size() > 1; }
/// The first address of each interface that NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY accept, at most 16. Without a name: those that begin
/// with ib, else all but docker*, lo* and virbr*, else docker*, lo* or virbr*. Empty where none fits.
std::vector<NetMachine::Interface> choose_interfaces(std::span<const NetMachine::Interface>, const NetFilter&);
/// "NCCL_SOCKET_IFNAME=foo and NCCL_SOCKET_FAMILY=AF_INET6" as far as they are set; empty where they are not.
std::string interface_rules(const NetFilter&);
/// NCCL_IB_DISABLE is a number other than 0.
bool rdma_disabled(const NetFilter&);
/// Warns of values that NCCL, and so we, take for not set.
void warn_of_ignored(const NetFilter&);

}  // namespace gyre::transport
