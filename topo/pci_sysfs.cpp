#include "topo/pci_sysfs.h"

#include <algorithm>
#include <system_error>

#include "base/sysfs.h"

namespace gyre::topo {
namespace fs = std::filesystem;

namespace {

int small_number(const fs::path& file) { return static_cast<int>(std::min<uint64_t>(sysfs::number(file).value_or(0), 0xffff)); }

// Of both ends of a link, the slower: a function, and the port in the folder above it. What it could do, since a link that rests
// says less of its speed; how many lanes it has now, since those that it lost do not come back.
PciLink read_link(const fs::path& folder) {
  PciLink link;
  for (const fs::path& end : {folder, folder.parent_path()}) {
    const auto speed = parse_link_speed(sysfs::first_line(end / "max_link_speed"));
    const int lanes = small_number(end / "max_link_width");
    if (speed) link.gt_per_s = link.gt_per_s > 0 ? std::min(link.gt_per_s, *speed) : *speed;
    if (lanes > 0 && lanes <= most_lanes) link.max_lanes = link.max_lanes > 0 ? std::min(link.max_lanes, lanes) : lanes;
  }
  const int now = small_number(folder / "current_link_width");
  link.lanes = now > 0 && now < link.max_lanes ? now : link.max_lanes;
  return link;
}

}  // namespace

std::optional<PciPlace> place_of(const fs::path& function) {
  std::error_code error;
  PciPlace place;
  fs::path walked;
  for (const fs::path& name : fs::canonical(function, error)) {
    walked /= name;
    const auto address = parse_pci_address(name.string());
    if (!address) continue;
    place.chain.push_back(*address);
    place.folders.push_back(walked);
  }
  if (place.chain.empty()) return std::nullopt;
  return place;
}

Pci read_pci(const PciAddress& address, const fs::path& folder) {
  const auto id = [&](const char* file) { return static_cast<uint16_t>(small_number(folder / file)); };
  Pci pci{address, 0, id("vendor"), id("device"), id("subsystem_vendor"), id("subsystem_device"), read_link(folder)};
  pci.class_code = static_cast<uint32_t>(sysfs::number(folder / "class").value_or(0) & 0xffffff);
  return pci;
}

}  // namespace gyre::topo
