// What sysfs says of an RDMA port and of a network interface. Files may be absent, unreadable or hold junk (drivers and containers differ):
// then the fact is unknown, never an error. Knows nothing of UCX and of the user's variables.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace gyre::sysfs {

struct RdmaPort {
  bool exists = false;
  bool active = false;
  std::string state;                    ///< as the file has it, for messages: "1: DOWN"
  std::string pci_path;                 ///< empty: not on PCI
  uint64_t guid = 0;                    ///< of the chip, else of the function; 0: unknown
  int mbit_per_s = 0;                   ///< 0: unknown
  std::vector<std::string> interfaces;  ///< of this port, the likeliest first
};
/// Device and number of each, in the order of their names.
std::vector<std::pair<std::string, int>> rdma_ports(const std::filesystem::path& root);
RdmaPort rdma_port(const std::filesystem::path& root, const std::string& device, int port);

struct Interface {
  std::string pci_path;
  uint64_t mac = 0;  ///< 0: none, as of lo
  int mbit_per_s = 0;
};
Interface interface(const std::filesystem::path& root, const std::string& name);

}  // namespace gyre::sysfs
