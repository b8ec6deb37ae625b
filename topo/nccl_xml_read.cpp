#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/file.h"
#include "topo/completed.h"
#include "topo/nccl_xml.h"
#ifdef GYRE_HAVE_PUGIXML
#include <map>
#include <pugixml.hpp>
#endif

namespace gyre::topo {

#ifdef GYRE_HAVE_PUGIXML
namespace {

constexpr int most_gpus = 576;                         // of a host: as many as NCCL (2.30) has room for in one domain of NVLinks
constexpr int deepest = 64;                            // elements inside each other
constexpr unsigned pci_infiniband = 0x0207;            // class and subclass
constexpr std::string_view hidden_prefix = "fffffff";  // begins what stands for a hidden_switch
// NCCL's sockets, and older plugins, have the number of a device for its GUID, which otherwise has a vendor and a serial number in it.
// (Where gyre's net plugin went by sockets, an interface's address stands there, and can't be told from an RDMA device's.)
constexpr uint64_t most_devices = 0xffff;

class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) {}

  Result<std::vector<Topology>> read() {
    pugi::xml_document document;
    const pugi::xml_parse_result parsed = document.load_buffer(text_.data(), text_.size());
    if (!parsed) return wrong_at(parsed.offset, parsed.description());
    const pugi::xml_node system = document.document_element();
    if (std::string_view(system.name()) != "system") return wrong(system, fmt::format("<{}> is not <system>", system.name()));
    const uint64_t version = GYRE_TRY(number(system, "version", 0));
    if (version != 1) return wrong(system, fmt::format("version {} of <system>, not 1", version));
    for (const pugi::xml_node cpu : system.children("cpu")) GYRE_TRY(read_cpu(cpu));
    if (hosts_.empty()) return wrong(system, "<system> has no <cpu>");
    for (const Topology& host : hosts_) {
      const auto gpus = std::ranges::count_if(host.parts, [](const Part& part) { return std::holds_alternative<Gpu>(part.is); });
      if (gpus > most_gpus) return wrong(system, fmt::format("a host of {} GPUs, must have {} at most", gpus, most_gpus));
    }
    return std::move(hosts_);
  }

 private:
  Error wrong_at(ptrdiff_t offset, const std::string& what) const {
    const std::string_view before = text_.substr(0, static_cast<size_t>(std::max<ptrdiff_t>(offset, 0)));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t start = before.rfind('\n') + 1;  // npos + 1 is the first
    return Error{Code::invalid_argument, fmt::format("{}:{}: {}", line, before.size() - start + 1, what)};
  }
  Error wrong(const pugi::xml_node& node, const std::string& what) const { return wrong_at(node.offset_debug(), what); }

  // A whole number, in decimal or after 0x. NCCL writes -1 where it does not know.
  Result<uint64_t> number(const pugi::xml_node& node, const char* name, uint64_t otherwise,
                          uint64_t most = std::numeric_limits<uint64_t>::max()) const {
    const std::string_view given = node.attribute(name).value();
    if (given.empty() || given == "-1") return otherwise;
    const bool hex = given.starts_with("0x");
    uint64_t value = 0;
    const char* const last = given.data() + given.size();
    const auto [end, error] = std::from_chars(given.data() + (hex ? 2 : 0), last, value, hex ? 16 : 10);
    if (error == std::errc() && end == last && value <= most) return value;
    return wrong(node, fmt::format("{}=\"{}\" of <{}> is not a whole number{}", name, given, node.name(),
                                   most == std::numeric_limits<uint64_t>::max() ? "" : fmt::format(" up to {}", most)));
  }
  // What is shown and written again, and is a file only without control characters and odd bytes.
  Result<std::string> words(const pugi::xml_node& node, const char* name) const {
    const std::string given = node.attribute(name).value();
    if (std::all_of(given.begin(), given.end(), [](char c) { return c >= ' ' && c <= '~'; })) return given;
    return wrong(node, fmt::format("{} of <{}> has characters that are not printable ASCII", name, node.name()));
  }
  Result<int> small(const pugi::xml_node& node, const char* name, int otherwise = 0) const {
    const uint64_t value = GYRE_TRY(number(node, name, std::numeric_limits<uint64_t>::max(), 0x7fffffff));
    return value == std::numeric_limits<uint64_t>::max() ? otherwise : static_cast<int>(value);
  }
  Result<PciAddress> address(const pugi::xml_node& node, const char* name) const {
    const auto parsed = parse_pci_address(node.attribute(name).value());
    if (parsed) return *parsed;
    return wrong(
        node, fmt::format("{}=\"{}\" of <{}> is not a PCI address such as 0000:1b:00.0", name, node.attribute(name).value(), node.name()));
  }

  // To the host that is being read.
  int push(Part part) {
    std::vector<Part>& parts = hosts_[host_].parts;
    parts.push_back(std::move(part));
    return static_cast<int>(parts.size()) - 1;
  }

  Status read_cpu(const pugi::xml_node& node) {
    const std::string hash = node.attribute("host_hash").value();  // which a file for one host need not have
    host_ = hash.empty() ? 0 : by_hash_.try_emplace(hash, by_hash_.size()).first->second;
    hosts_.resize(std::max(hosts_.size(), host_ + 1));
    Numa numa;
    numa.id = GYRE_TRY(small(node, "numaid", -1));
    numa.cpus = GYRE_TRY(words(node, "affinity"));
    numa.arch = GYRE_TRY(words(node, "arch"));
    numa.vendor = GYRE_TRY(words(node, "vendor"));
    numa.family = GYRE_TRY(small(node, "familyid"));
    numa.model = GYRE_TRY(small(node, "modelid"));
    const int part = push({-1, std::nullopt, std::move(numa)});
    for (const pugi::xml_node nic : node.children("nic")) push({part, std::nullopt, GYRE_TRY(read_nic(nic))});
    for (const pugi::xml_node pci : node.children("pci")) GYRE_TRY(read_pci(pci, part, 1));
    return {};
  }

  Status read_pci(const pugi::xml_node& node, int parent, int depth) {
    if (depth > deepest) return wrong(node, fmt::format("<pci> inside {} others", deepest));
    Part part;
    part.parent = parent;
    part.pci = GYRE_TRY(pci_of(node));
    const auto [known, fresh] = at_.try_emplace({host_, part.pci->address}, node.offset_debug());
    if (!fresh)
      return wrong(node, fmt::format("busid {} is there twice; {}", text(part.pci->address), wrong_at(known->second, "the first").what));
    const pugi::xml_node gpu = node.child("gpu");
    const pugi::xml_node nic = node.child("nic");
    const unsigned kind = part.pci->base_class();
    const bool nvidia = part.pci->vendor == pci_nvidia || part.pci->vendor == 0;  // many files leave the vendor out
    if (gpu || (kind == pci_display && nvidia)) {
      part.is = GYRE_TRY(read_gpu(gpu));
    } else if (nic || kind == pci_network) {
      Nic found = GYRE_TRY(read_nic(nic));
      if (!nic) found.ports.push_back({text(part.pci->address), 1, 0, 0, part.pci->class_code >> 8 == pci_infiniband});
      part.is = std::move(found);
    } else if (kind == pci_bridge || node.child("pci") || part.pci->class_code == 0) {
      part.is = Switch{};  // without a class until it is completed()
    } else {
      return {};  // a disk, say
    }
    const int index = push(std::move(part));
    for (const pugi::xml_node below : node.children("pci")) GYRE_TRY(read_pci(below, index, depth + 1));
    return {};
  }

  Result<Pci> pci_of(const pugi::xml_node& node) const {
    Pci pci;
    pci.address = GYRE_TRY(address(node, "busid"));
    pci.class_code = static_cast<uint32_t>(GYRE_TRY(number(node, "class", 0, 0xffffff)));
    pci.vendor = static_cast<uint16_t>(GYRE_TRY(number(node, "vendor", 0, 0xffff)));
    pci.device = static_cast<uint16_t>(GYRE_TRY(number(node, "device", 0, 0xffff)));
    pci.subsystem_vendor = static_cast<uint16_t>(GYRE_TRY(number(node, "subsystem_vendor", 0, 0xffff)));
    pci.subsystem_device = static_cast<uint16_t>(GYRE_TRY(number(node, "subsystem_device", 0, 0xffff)));
    pci.link.gt_per_s = parse_link_speed(node.attribute("link_speed").value()).value_or(0);
    const int lanes = GYRE_TRY(small(node, "link_width"));
    pci.link.lanes = pci.link.max_lanes = lanes <= most_lanes ? lanes : 0;
    return pci;
  }

  Result<Gpu> read_gpu(const pugi::xml_node& node) const {
    Gpu gpu;
    gpu.index = GYRE_TRY(small(node, "dev", -1));
    gpu.compute_capability = GYRE_TRY(small(node, "sm"));
    for (const pugi::xml_node link : node.children("nvlink")) {
      std::optional<PciAddress> target;
      const bool hidden = std::string_view(link.attribute("target").value()).starts_with(hidden_prefix);
      if (!hidden) target = GYRE_TRY(address(link, "target"));
      gpu.nvlinks.push_back({target, static_cast<uint32_t>(GYRE_TRY(number(link, "tclass", 0, 0xffffff))),
                             static_cast<int>(GYRE_TRY(number(link, "count", 1, 1024)))});
    }
    const pugi::xml_node c2c = node.child("c2c");
    gpu.c2c_links = GYRE_TRY(small(c2c, "count"));
    gpu.c2c_bytes_per_s = 1e6 * GYRE_TRY(small(c2c, "bw"));
    return gpu;
  }

  Result<Nic> read_nic(const pugi::xml_node& node) const {
    Nic nic;
    for (const pugi::xml_node net : node.children("net")) {
      Port port;
      port.name = GYRE_TRY(words(net, "name"));
      port.number = std::max(1, GYRE_TRY(small(net, "port")));  // NCCL has 0 for a socket
      port.gbit_per_s = GYRE_TRY(small(net, "speed")) / 1000.0;
      port.guid = GYRE_TRY(number(net, "guid", 0));
      port.rdma = port.guid > most_devices;
      nic.ports.push_back(std::move(port));
    }
    return nic;
  }

  std::string_view text_;
  std::vector<Topology> hosts_;
  std::map<std::string, size_t> by_hash_;
  size_t host_ = 0;
  std::map<std::pair<size_t, PciAddress>, ptrdiff_t> at_;  // of a host: where each was
};

}  // namespace

Result<std::vector<Topology>> read_nccl_xml(std::string_view text) { return XmlReader(text).read(); }

#else

Result<std::vector<Topology>> read_nccl_xml(std::string_view) {
  return Error{Code::invalid_usage, "gyre was built without pugixml, which reads topology files"};
}

#endif

Result<std::vector<Topology>> read_nccl_file(std::string_view named, const std::string& path) {
  constexpr size_t most_bytes = 64 << 20;  // the largest machines take some 100 KiB
  const auto text = read_file(path, most_bytes);
  if (!text) return Error{text.error().code, fmt::format("{} {}: {}", named, path, text.error().what)};
  auto hosts = read_nccl_xml(*text);
  if (!hosts) return Error{hosts.error().code, fmt::format("{} {}:{}", named, path, hosts.error().what)};
  return hosts;
}

}  // namespace gyre::topo
