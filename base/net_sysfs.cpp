#include "base/net_sysfs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <regex>
#include <utility>

#include "base/sysfs.h"

namespace gyre::sysfs {
namespace {

namespace fs = std::filesystem;

/// Above it a speed is junk, such as a driver's -1 printed without its sign.
constexpr double max_mbit_per_s = 1e8;

/// Where a device link leads, or the nearest PCI function above it: a virtio NIC's own folder is below that.
std::string pci_function(const fs::path& link) {
  static const std::regex address("[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]");
  std::error_code error;
  auto path = fs::canonical(link, error);
  if (error) return {};
  while (path.has_relative_path() && !std::regex_match(path.filename().native(), address)) path = path.parent_path();
  return path.has_relative_path() ? path.string() : std::string{};
}

/// Digits in groups, such as 0c42:a103:00b5:4f1c or 02:fc:00:00:00:01. 0: anything else.
uint64_t hex_digits(std::string text, size_t digits) {
  std::erase(text, ':');
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc{} && end == text.data() + text.size() && text.size() == digits ? value : 0;
}

/// The number that the text begins with, times `unit`. 0: no number, or none that a network can have.
int speed(const std::string& text, double unit) {
  double value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) return 0;
  value *= unit;
  return value > 0 && value < max_mbit_per_s ? static_cast<int>(std::lround(value)) : 0;
}

int whole_number(const std::string& text, int base) {
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

/// RoCE's kernel names the interface of each GID. IPoIB's interfaces, and RoCE's too, hang below the device, and say of which port they
/// are; older drivers of IPoIB say it in dev_id only.
std::vector<std::string> interfaces_of(const fs::path& device, int port) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const auto& gid : entries(device / "ports" / std::to_string(port) / "gid_attrs/ndevs")) add(first_line(gid));
  for (const auto& net : entries(device / "device/net")) {
    auto id = first_line(net / "dev_id");
    if (id.starts_with("0x")) id.erase(0, 2);
    if (std::max(whole_number(first_line(net / "dev_port"), 10), whole_number(id, 16)) == port - 1) add(net.filename());
  }
  return names;
}

}  // namespace

std::vector<std::pair<std::string, int>> rdma_ports(const fs::path& root) {
  std::vector<std::pair<std::string, int>> ports;
  for (const auto& device : entries(root / "class/infiniband"))
    for (const auto& port : entries(device / "ports"))
      if (const int number = whole_number(port.filename(), 10); number > 0 && number <= UINT8_MAX)
        ports.emplace_back(device.filename(), number);
  return ports;
}

RdmaPort rdma_port(const fs::path& root, const std::string& device, int port) {
  const auto folder = root / "class/infiniband" / device;
  const auto port_folder = folder / "ports" / std::to_string(port);
  RdmaPort result;
  std::error_code error;
  result.exists = fs::is_directory(port_folder, error);
  if (!result.exists) return result;
  result.state = first_line(port_folder / "state");
  result.active = result.state == "4: ACTIVE";  // not ACTIVE_DEFER
  result.pci_path = pci_function(folder / "device");
  result.guid = hex_digits(first_line(folder / "sys_image_guid"), 16);
  if (result.guid == 0) result.guid = hex_digits(first_line(folder / "node_guid"), 16);
  result.mbit_per_s = speed(first_line(port_folder / "rate"), 1000);
  result.interfaces = interfaces_of(folder, port);
  return result;
}

Interface interface(const fs::path& root, const std::string& name) {
  const auto folder = root / "class/net" / name;
  return {pci_function(folder / "device"), hex_digits(first_line(folder / "address"), 12), speed(first_line(folder / "speed"), 1)};
}

}  // namespace gyre::sysfs
