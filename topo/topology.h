// The hardware of one machine: its NUMA nodes, the PCI switches, GPUs and NICs below them, and the NVLinks between GPUs. Plain data, filled
// by discover() from sysfs, or from one of NCCL's topology files (nccl_xml.h).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "topo/pci.h"

namespace gyre::topo {

struct Numa {
  int id = 0;        ///< the system's; -1: it knows of none
  std::string cpus;  ///< its processors, as sysfs writes a mask: words of 32 bits, the highest first
  std::string arch;  ///< x86_64, arm64; this and what follows empty or 0 where nothing says so
  std::string vendor;
  int family = 0;
  int model = 0;
};

struct Switch {};

/// NVLinks of a GPU that end at the same place.
struct NvLink {
  std::optional<PciAddress> target;  ///< another GPU; an NVSwitch, which joins all GPUs with links to one; or a processor. Empty: an
                                     ///< NVSwitch that a virtual machine does not show
  uint32_t target_class = 0;         ///< its PCI class; 0: unknown
  int links = 0;
  double bytes_per_s = 0;  ///< of each, in one direction; 0: unknown
};

struct Gpu {
  int index = -1;              ///< NVML's; -1: unknown
  int compute_capability = 0;  ///< major × 10 + minor; 0: unknown
  std::vector<NvLink> nvlinks;
  int c2c_links = 0;  ///< to the processor of its package, and what each moves in one direction
  double c2c_bytes_per_s = 0;
};

struct Port {
  std::string name;  ///< of the RDMA device, or of the network interface
  int number = 1;    ///< of the RDMA device's ports
  double gbit_per_s = 0;
  uint64_t guid = 0;
  bool rdma = false;
  bool up = true;
};

struct Nic {
  std::vector<Port> ports;
};

struct Part {
  int parent = -1;         ///< -1: the machine, of NUMA nodes only
  std::optional<Pci> pci;  ///< of switches, GPUs, and the NICs that have one
  std::variant<Numa, Switch, Gpu, Nic> is;
};

struct Topology {
  std::vector<Part> parts;  ///< parents before their children

  const Part& part(int index) const { return parts[static_cast<size_t>(index)]; }
  const Gpu& gpu(int part_of_gpu) const { return std::get<Gpu>(part(part_of_gpu).is); }
  const std::vector<Port>& ports(int nic) const { return std::get<Nic>(part(nic).is).ports; }
  const Port& port(int nic, int port_of_nic) const { return ports(nic)[static_cast<size_t>(port_of_nic)]; }
  std::vector<int> children(int parent) const;
  template <class Kind>
  std::vector<int> all() const {
    std::vector<int> found;
    for (size_t part = 0; part < parts.size(); ++part) {
      if (std::holds_alternative<Kind>(parts[part].is)) found.push_back(static_cast<int>(part));
    }
    return found;
  }
};

/// How far apart two parts are, nearest first: by NCCL's names, which text() gives (LOC, PIX, PXB, PHB, SYS).
enum class Distance { same, one_switch, switches, host_bridge, system };
std::string_view text(Distance);

struct Path {
  Distance distance = Distance::same;
  double bytes_per_s = 0;  ///< of its narrowest PCI link; 0: one of them is unknown
  int links = 0;           ///< PCI links on it
};
/// Over PCI and the processors' own links. Requires: both are parts.
Path path(const Topology&, int from, int to);

/// NVLinks on the way from a GPU to another: direct ones, or the fewer of both that end at switches; 0: none. Requires: both are GPUs.
int nvlinks(const Topology&, int from, int to);
/// Those that join just the two, and those of a GPU that end at switches.
int direct_nvlinks(const Topology&, int from, int to);
int switched_nvlinks(const Topology&, int gpu);

/// A port of a NIC.
struct Way {
  int nic = 0;  ///< a part
  int port = 0;
  Path path;
};
/// For each GPU, in the order of parts, the ports over which it reaches other machines, best first: those that are up; RDMA, then, as a
/// network of its own that runs only where there is no RDMA, plain interfaces; in each the nearest, then the widest path, then the fastest.
/// The first is the GPU's own: of what is still equal to it the one that fewest others have, and of such one of the NIC that fewest have,
/// where those with less to choose from come first, so that all rails are used. Depends on nothing but the topology: all ranks that have it
/// agree.
std::vector<std::vector<Way>> ways_out(const Topology&);

}  // namespace gyre::topo
