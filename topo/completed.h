// A machine as a topology file tells of it, made whole: a file may leave out whatever the system shows.
#pragma once
#include "topo/topology.h"

namespace gyre::topo {

/// As NCCL goes about NCCL_TOPO_FILE: what the file says of a place stays, the system (`shown`) is asked for the rest, and its GPUs and
/// NICs that the file does not have are put where it shows them. A port is where the file has its name, else at its NIC; one that the
/// system does not show is down.
Topology completed(Topology told, const Topology& shown);

/// A NIC that a file tells by its class alone, as clouds do, has one port until it is completed: it goes by the NIC's address, so that it
/// can be a way out, and is not written into a file.
inline bool stands_for_ports(const Part& nic, const Port& port) { return nic.pci && port.name == text(nic.pci->address); }

}  // namespace gyre::topo
