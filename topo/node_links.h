// What the GPUs of a machine have between each other and to the network, as channels use it: each NVLink and each port once.
#pragma once
#include <vector>

#include "topo/topology.h"

namespace gyre::topo {

/// A port that leaves the machine.
struct Rail {
  int nic = 0;            ///< a part of the topology
  int port = 0;           ///< of the NIC
  std::vector<int> near;  ///< the GPUs that go out by it

  bool operator==(const Rail&) const = default;
};

/// GPUs are numbered from 0 in the order of the topology's parts.
struct NodeLinks {
  int gpus = 0;
  std::vector<Distance> distance;  ///< [from * gpus + to]: over PCI and the processors' links
  std::vector<int> direct;         ///< [from * gpus + to]: NVLinks that join just these two
  std::vector<int> switched;       ///< [gpu]: NVLinks that end at switches
  std::vector<Rail> rails;
  std::vector<bool> missing;  ///< [from * gpus + to]: they can't reach each other, by NVLinks neither; empty: all can

  size_t at(int from, int to) const { return static_cast<size_t>(from) * static_cast<size_t>(gpus) + static_cast<size_t>(to); }
  bool nvlink(int from, int to) const {
    if (!reaches(from, to)) return false;
    return direct[at(from, to)] > 0 || (switched[static_cast<size_t>(from)] > 0 && switched[static_cast<size_t>(to)] > 0);
  }
  bool reaches(int from, int to) const { return missing.empty() || !missing[at(from, to)]; }
  bool operator==(const NodeLinks&) const = default;
};

/// Of all GPUs. A rail is a port that is some GPU's best way out, or one that is as good but left over: as near and fast, by a path as wide
/// or as wide as the port is fast; in the order of NICs and ports.
NodeLinks node_links(const Topology&);

}  // namespace gyre::topo
