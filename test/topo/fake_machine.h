// Machines that are not here: their /sys and /proc in a temporary folder, laid out as Linux does.
#pragma once
#include <filesystem>
#include <fstream>
#include <string>

#include "test/folder.h"

namespace gyre::test {

class FakeMachine {
 public:
  struct Function {
    std::string class_code;
    std::string vendor = "0x10de";
    int numa = -1;
    std::string speed = "32.0 GT/s PCIe";
    int lanes = 16;
    int lanes_now = 16;
  };

  std::filesystem::path root() const { return std::filesystem::canonical(folder_.path()); }
  void put(const std::string& file, const std::string& line) const {
    std::filesystem::create_directories((root() / file).parent_path());
    std::ofstream(root() / file) << line << '\n';
  }
  void link(const std::string& from, const std::string& to) const {
    std::filesystem::create_directories((root() / from).parent_path());
    std::filesystem::create_directory_symlink(root() / to, root() / from);
  }

  void numa(int id, const std::string& cpus) const { put("sys/devices/system/node/node" + std::to_string(id) + "/cpumap", cpus); }
  void x86() const {
    put("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: X 9000");
  }
  void arm() const { put("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f"); }

  /// A function below bridges: "0000:16/0000:16:01.0/0000:17:00.0", of which the first is the host bridge. Its folder.
  std::string pci(const std::string& chain, const Function& function) const {
    const std::string folder = "sys/devices/pci" + chain;
    put(folder + "/class", function.class_code);
    put(folder + "/vendor", function.vendor);
    put(folder + "/numa_node", std::to_string(function.numa));
    if (!function.speed.empty()) {
      put(folder + "/max_link_speed", function.speed);
      put(folder + "/current_link_speed", "2.5 GT/s PCIe");  // it rests
      put(folder + "/max_link_width", std::to_string(function.lanes));
      put(folder + "/current_link_width", std::to_string(function.lanes_now));
    }
    link("sys/bus/pci/devices/" + chain.substr(chain.rfind('/') + 1), folder);
    return folder;
  }
  std::string bridge(const std::string& chain, int numa) const { return pci(chain, {"0x060400", "0x1000", numa}); }
  std::string gpu(const std::string& chain, int numa) const { return pci(chain, {"0x030200", "0x10de", numa}); }
  std::string nic(const std::string& chain, int numa) const { return pci(chain, {"0x020700", "0x15b3", numa}); }

  void rdma(const std::string& function, const std::string& name, const std::string& rate, const std::string& state = "4: ACTIVE") const {
    const std::string device = function + "/infiniband/" + name;
    put(device + "/node_guid", "9c63:c003:0012:34" + std::to_string(10 + devices_++));
    put(device + "/ports/1/rate", rate);
    put(device + "/ports/1/state", state);
    link(device + "/device", function);
    link("sys/class/infiniband/" + name, device);
  }
  void interface(const std::string& function, const std::string& name, const std::string& mbit, const std::string& state = "up") const {
    const std::string device = function + "/net/" + name;
    put(device + "/speed", mbit);
    put(device + "/dev_port", "0");
    put(device + "/operstate", state);
    link(device + "/device", function);
    link("sys/class/net/" + name, device);
  }

 private:
  Folder folder_;
  mutable int devices_ = 0;
};

/// Like a DGX H100: a switch for each of eight GPUs and its NIC, four on each socket; a port for storage on each socket, and one of
/// Ethernet.
inline void make_dgx(const FakeMachine& machine) {
  machine.x86();
  machine.numa(0, "00000000,ffffffff");
  machine.numa(1, "ffffffff,00000000");
  for (int i = 0; i < 8; ++i) {
    const int numa = i / 4;
    const std::string bus = std::to_string(10 + 10 * i);
    const std::string port = "0000:" + bus + "/0000:" + bus + ":01.0";
    const std::string upper = port + "/0000:" + std::to_string(11 + 10 * i) + ":00.0";
    const auto lower = [&](int n) { return upper + "/0000:" + std::to_string(12 + 10 * i) + ":0" + std::to_string(n) + ".0"; };
    machine.bridge(port, numa);
    machine.bridge(upper, numa);
    machine.bridge(lower(0), numa);
    machine.bridge(lower(1), numa);
    machine.gpu(lower(0) + "/0000:" + std::to_string(13 + 10 * i) + ":00.0", numa);
    const std::string nic = machine.nic(lower(1) + "/0000:" + std::to_string(14 + 10 * i) + ":00.0", numa);
    machine.rdma(nic, "mlx5_" + std::to_string(i), "400 Gb/sec (4X NDR)");
    machine.interface(nic, "ib" + std::to_string(i), "400000");
  }
  for (int socket = 0; socket < 2; ++socket) {
    const std::string bus = std::to_string(90 + socket);
    machine.bridge("0000:" + bus + "/0000:" + bus + ":01.0", socket);
    const std::string nic = machine.nic("0000:" + bus + "/0000:" + bus + ":01.0/0000:" + std::to_string(92 + socket) + ":00.0", socket);
    machine.rdma(nic, "mlx5_" + std::to_string(8 + socket), "200 Gb/sec (4X HDR)");
  }
  machine.interface(machine.pci("0000:00/0000:00:1f.6", {"0x020000", "0x8086", 0, "", 0, 0}), "eno1", "1000");
}

}  // namespace gyre::test
