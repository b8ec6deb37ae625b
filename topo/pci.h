// PCI functions and their links, as sysfs, NVML and NCCL's topology files write them.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gyre::topo {

struct PciAddress {
  uint32_t domain = 0;
  uint8_t bus = 0;
  uint8_t device = 0;
  uint8_t function = 0;

  auto operator<=>(const PciAddress&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes its 0 for a pointer
};

/// "0000:1b:00.0", in either case and with four to eight digits of domain (NVML writes eight); empty: it is none.
std::optional<PciAddress> parse_pci_address(std::string_view);
/// In lower case, with four digits of domain unless it needs more.
std::string text(const PciAddress&);

/// A function's link to the port above it. 0: unknown, as in most virtual machines.
struct PciLink {
  double gt_per_s = 0;  ///< transfers of one lane
  int lanes = 0;        ///< now
  int max_lanes = 0;    ///< that both of its ends have; more than `lanes`: the link was trained down

  /// What it moves in one direction after its line code, before packets' headers.
  double bytes_per_s() const;
};

constexpr int most_lanes = 64;  ///< of a link. What is said above is not known: the kernel says 255 then

/// The number of "16.0 GT/s PCIe" or "16 GT/s"; empty: it says none ("Unknown", "").
std::optional<double> parse_link_speed(std::string_view);

struct Pci {
  PciAddress address;
  uint32_t class_code = 0;  ///< class, subclass and programming interface, a byte each
  uint16_t vendor = 0;
  uint16_t device = 0;
  uint16_t subsystem_vendor = 0;
  uint16_t subsystem_device = 0;
  PciLink link;

  unsigned base_class() const { return class_code >> 16; }  ///< one of the constants below
};
constexpr unsigned pci_network = 0x02;
constexpr unsigned pci_display = 0x03;
constexpr unsigned pci_bridge = 0x06;
constexpr uint32_t pci_nvswitch = 0x068000;  // whole classes, as NVSwitches and GPUs have them
constexpr uint32_t pci_gpu = 0x030200;
constexpr uint16_t pci_nvidia = 0x10de;

}  // namespace gyre::topo
