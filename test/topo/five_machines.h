// The machines that tests bring: besides make_dgx() (fake_machine.h) a box of two sockets, a flat virtual machine, a laptop, a tray like a
// GB200's. Each function lays one out, and returns what a driver would tell of its GPUs.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "test/topo/fake_machine.h"
#include "topo/discover.h"

namespace gyre::test {

using DriverGpus = std::vector<topo::DriverGpu>;

/// A DGX whose GPUs have 18 NVLinks each, to switches.
inline DriverGpus make_linked_dgx(const FakeMachine& machine) {
  make_dgx(machine);
  DriverGpus driver;
  for (int gpu = 0; gpu < 8; ++gpu) {
    driver.push_back({*topo::parse_pci_address("0000:" + std::to_string(10 * gpu + 13) + ":00.0"), {}});
    driver.back().gpu.nvlinks = {{std::nullopt, topo::pci_nvswitch, 18}};
  }
  return driver;
}

/// On each socket a switch, behind it two with two GPUs each, and a NIC beside these.
inline DriverGpus make_box(const FakeMachine& machine) {
  machine.x86();
  machine.numa(0, "0000ffff");
  machine.numa(1, "ffff0000");
  for (int socket = 0; socket < 2; ++socket) {
    const std::string s = std::to_string(socket);
    const std::string top = "0000:" + s + "0/0000:" + s + "0:01.0/0000:" + s + "1:00.0";
    machine.bridge("0000:" + s + "0/0000:" + s + "0:01.0", socket);
    machine.bridge(top, socket);
    for (int half = 0; half < 2; ++half) {
      const std::string below = top + "/0000:" + s + "2:0" + std::to_string(half) + ".0";
      const std::string bus = "/0000:" + s + std::to_string(3 + half);
      machine.bridge(below, socket);
      machine.bridge(below + bus + ":00.0", socket);
      for (int gpu = 0; gpu < 2; ++gpu) {
        const std::string port = below + bus + ":00.0/0000:" + s + std::to_string(5 + half) + ":0" + std::to_string(gpu) + ".0";
        machine.bridge(port, socket);
        machine.gpu(port + "/0000:" + s + std::to_string(7 + half) + ":0" + std::to_string(gpu) + ".0", socket);
      }
    }
    const std::string nic = machine.nic(top + "/0000:" + s + "2:02.0/0000:" + s + "9:00.0", socket);
    machine.rdma(nic, "mlx5_" + s, "100 Gb/sec (4X EDR)");
  }
  return {};
}

/// GPUs and interfaces side by side; nothing is said of their links.
inline DriverGpus make_flat_vm(const FakeMachine& machine) {
  machine.x86();
  machine.numa(0, "ff");
  for (int i = 0; i < 4; ++i) machine.pci("0000:00/0000:00:0" + std::to_string(4 + i) + ".0", {"0x030200", "0x10de", -1, "", 0, 0});
  for (int i = 0; i < 2; ++i) {
    const std::string nic = machine.pci("0000:00/0000:00:0" + std::to_string(2 + i) + ".0", {"0x020000", "0x1af4", -1, "", 0, 0});
    machine.interface(nic + "/virtio" + std::to_string(i), "eth" + std::to_string(i), "-1");  // the folder is below the function's
  }
  machine.put("sys/class/net/lo/operstate", "unknown");
  return {};
}

/// A GPU, wireless, and an interface that is down.
inline DriverGpus make_laptop(const FakeMachine& machine) {
  machine.x86();
  machine.pci("0000:00/0000:00:02.0", {"0x030000", "0x8086", -1, "", 0, 0});
  machine.bridge("0000:00/0000:00:01.0", -1);
  machine.pci("0000:00/0000:00:01.0/0000:01:00.0", {"0x030000", "0x10de", -1, "16.0 GT/s PCIe", 8, 4});
  machine.pci("0000:00/0000:00:01.0/0000:01:00.1", {"0x040300", "0x10de", -1, "16.0 GT/s PCIe", 8, 8});  // its sound
  machine.interface(machine.pci("0000:00/0000:00:14.3", {"0x028000", "0x8086", -1, "", 0, 0}), "wlan0", "");
  machine.interface(machine.pci("0000:00/0000:00:1f.6", {"0x020000", "0x8086", -1, "", 0, 0}), "enp0s31f6", "1000", "down");
  return {};
}

/// Four GPUs, one of which has lost two of its 18 NVLinks; two NICs at each socket.
inline DriverGpus make_tray(const FakeMachine& machine) {
  machine.arm();
  machine.numa(0, "00,000000ff");
  machine.numa(1, "00,0000ff00");
  for (int memory = 2; memory < 6; ++memory) machine.numa(memory, "00,00000000");
  DriverGpus driver;
  for (int i = 0; i < 4; ++i) {
    const std::string domain = std::string(i < 2 ? "00" : "01") + (i % 2 == 0 ? "08" : "09");
    machine.bridge(domain + ":00/" + domain + ":00:00.0", i / 2);
    machine.gpu(domain + ":00/" + domain + ":00:00.0/" + domain + ":01:00.0", i / 2);
    const std::string other = std::string(i < 2 ? "10" : "11") + domain.substr(2);
    machine.bridge(other + ":00/" + other + ":00:00.0", i / 2);
    machine.rdma(machine.nic(other + ":00/" + other + ":00:00.0/" + other + ":01:00.0", i / 2), "mlx5_" + std::to_string(i),
                 "400 Gb/sec (4X NDR)");
    driver.push_back({*topo::parse_pci_address(domain + ":01:00.0"), {}});
    driver.back().gpu.index = 3 - i;  // the driver's order is its own
    driver.back().gpu.compute_capability = 100;
    driver.back().gpu.nvlinks = {{std::nullopt, 0x068000, i == 3 ? 16 : 18}};
    driver.back().gpu.c2c_links = 1;
  }
  return driver;
}

struct NamedMachine {
  const char* name;
  DriverGpus (*make)(const FakeMachine&);

  topo::Topology topology() const {
    const FakeMachine machine;
    const DriverGpus driver = make(machine);
    return *topo::discover(machine.root(), driver);
  }
};
inline constexpr std::array five_machines{NamedMachine{"DGX", make_linked_dgx}, NamedMachine{"box", make_box},
                                          NamedMachine{"flat virtual machine", make_flat_vm}, NamedMachine{"laptop", make_laptop},
                                          NamedMachine{"tray", make_tray}};

}  // namespace gyre::test
