#include <fmt/format.h>

#include <algorithm>

#include "topo/completed.h"
#include "topo/nccl_xml.h"

namespace gyre::topo {
namespace {

constexpr size_t longest_value = 253;  // that NCCL takes; of what is left out it asks the system

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

class XmlWriter {
 public:
  explicit XmlWriter(const Topology& topology) : topology_(topology) {
    out_ = "<system version=\"1\">\n";
    write_below(-1, 2);
    out_ += "</system>\n";
  }
  std::string take() { return std::move(out_); }

 private:
  // An element with what is inside; "/>" where that is nothing.
  template <class Inside>
  void element(int indent, std::string_view name, const std::string& attributes, const Inside& inside) {
    out_ += fmt::format("{:{}}<{}{}", "", indent, name, attributes);
    const size_t open = out_.size();
    out_ += ">\n";
    const size_t before = out_.size();
    inside();
    if (out_.size() == before) {
      out_.replace(open, 2, "/>\n");
    } else {
      out_ += fmt::format("{:{}}</{}>\n", "", indent, name);
    }
  }
  void element(int indent, std::string_view name, const std::string& attributes) {
    element(indent, name, attributes, [] {});
  }

  void write_below(int parent, int indent) {
    for (const int child : topology_.children(parent)) {
      const Part& part = topology_.part(child);
      const auto inside = [&](int deeper) {
        if (const Gpu* gpu = std::get_if<Gpu>(&part.is)) write(*gpu, deeper);
        if (std::holds_alternative<Nic>(part.is)) write_nic(part, deeper);
        write_below(child, deeper);
      };
      if (const Numa* numa = std::get_if<Numa>(&part.is)) {
        element(indent, "cpu", attributes(*numa), [&] { inside(indent + 2); });
      } else if (part.pci) {
        element(indent, "pci", attributes(*part.pci, std::holds_alternative<Gpu>(part.is)), [&] { inside(indent + 2); });
      } else {
        inside(indent);  // a NIC without PCI is its NUMA node's own
      }
    }
  }

  static std::string attributes(const Numa& numa) {
    std::string out = fmt::format(" numaid=\"{}\"", numa.id);
    for (const auto& [name, value] : {std::pair{"affinity", &numa.cpus}, {"arch", &numa.arch}, {"vendor", &numa.vendor}}) {
      const std::string said = escaped(*value);
      if (!said.empty() && said.size() <= longest_value) out += fmt::format(" {}=\"{}\"", name, said);
    }
    if (numa.family != 0) out += fmt::format(" familyid=\"{}\" modelid=\"{}\"", numa.family, numa.model);
    return out;
  }

  // What is unknown is left out, since NCCL asks the system for what is not there.
  static std::string attributes(const Pci& pci, bool gpu) {
    std::string out = fmt::format(" busid=\"{}\"", text(pci.address));
    const uint32_t class_code = pci.class_code == 0 && gpu ? pci_gpu : pci.class_code;
    if (class_code != 0) out += fmt::format(" class=\"0x{:06x}\"", class_code);
    for (const auto& [name, value] : {std::pair{"vendor", pci.vendor},
                                      {"device", pci.device},
                                      {"subsystem_vendor", pci.subsystem_vendor},
                                      {"subsystem_device", pci.subsystem_device}}) {
      if (value != 0) out += fmt::format(" {}=\"0x{:04x}\"", name, value);
    }
    if (pci.link.gt_per_s > 0) out += fmt::format(" link_speed=\"{:.1f} GT/s PCIe\"", pci.link.gt_per_s);  // as the kernel says it
    if (pci.link.lanes > 0) out += fmt::format(" link_width=\"{}\"", pci.link.lanes);
    return out;
  }

  void write(const Gpu& gpu, int indent) {
    const bool known = gpu.index >= 0 || gpu.compute_capability > 0 || !gpu.nvlinks.empty() || gpu.c2c_links > 0;
    if (!known) return;  // the class says that it is one; NCCL fills in the rest
    const std::string dev = gpu.index >= 0 ? fmt::format(" dev=\"{}\"", gpu.index) : "";
    const std::string sm = gpu.compute_capability > 0 ? fmt::format(" sm=\"{}\"", gpu.compute_capability) : "";
    element(indent, "gpu", dev + sm, [&] {
      for (const NvLink& link : gpu.nvlinks) {
        const std::string to = link.target_class != 0 ? fmt::format(" tclass=\"0x{:06x}\"", link.target_class) : "";
        element(
            indent + 2, "nvlink",
            fmt::format(" target=\"{}\" count=\"{}\"{}", link.target ? text(*link.target) : std::string(hidden_switch), link.links, to));
      }
      if (gpu.c2c_links > 0) {
        element(indent + 2, "c2c", fmt::format(" bw=\"{:.0f}\" count=\"{}\"", gpu.c2c_bytes_per_s / 1e6, gpu.c2c_links));
      }
    });
  }

  void write_nic(const Part& part, int indent) {
    const auto& ports = std::get<Nic>(part.is).ports;
    // The class alone says that it is one: an element would say that these are its ports.
    if (!ports.empty() && std::all_of(ports.begin(), ports.end(), [&](const Port& port) { return stands_for_ports(part, port); })) return;
    element(indent, "nic", "", [&] {
      for (const Port& port : ports) {
        if (!port.up || stands_for_ports(part, port)) continue;  // the file can't say so
        element(indent + 2, "net",
                fmt::format(" name=\"{}\" dev=\"{}\" speed=\"{:.0f}\" port=\"{}\" guid=\"0x{:x}\"", escaped(port.name), devices_++,
                            port.gbit_per_s * 1000, port.number, port.guid));
      }
    });
  }

  const Topology& topology_;
  std::string out_;
  int devices_ = 0;
};

}  // namespace

std::string write_nccl_xml(const Topology& topology) { return XmlWriter(topology).take(); }

}  // namespace gyre::topo
