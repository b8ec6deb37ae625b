// What sysfs says of a PCI function, and where it is.
#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "topo/pci.h"

namespace gyre::topo {

/// A function with the bridges above it, the root port first and itself last.
struct PciPlace {
  std::vector<PciAddress> chain;
  std::vector<std::filesystem::path> folders;  ///< of each
};
/// Of a function's folder, links followed; empty: it is not there, or not on PCI.
std::optional<PciPlace> place_of(const std::filesystem::path& function);

/// What is absent or junk is 0.
Pci read_pci(const PciAddress&, const std::filesystem::path& folder);

}  // namespace gyre::topo
