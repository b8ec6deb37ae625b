#include "perf/topology_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "perf/channels_svg.h"
#include "perf/topology_text.h"
#include "perf/way_lines.h"
#include "schedule/svg.h"

namespace gyre::perf {
namespace {

using schedule::svg::Box;
using topo::Gpu, topo::Nic, topo::Numa, topo::Part, topo::Port, topo::Switch, topo::Topology;
namespace svg = schedule::svg;

constexpr double gap = 12, heading = 24, line_height = 15, letter = 7, title_letter = 9, least_width = 1220;

struct Look {
  std::string_view fill, stroke;
};
Look look_of(const Part& part) {
  if (std::holds_alternative<Gpu>(part.is)) return {"#e3f1dc", "#5c9a3c"};
  if (std::holds_alternative<Nic>(part.is)) return {"#dde8f6", "#3f72af"};
  if (std::holds_alternative<Switch>(part.is)) return {"#f4f0e6", "#b09a62"};
  return {"#fafafa", "#8c8c8c"};
}

std::string place_of(const Part& part) { return part.pci ? text(part.pci->address) : ""; }

std::string link_of(const Part& part) {
  if (!part.pci || part.pci->link.gt_per_s <= 0 || part.pci->link.lanes == 0) return "";
  return fmt::format("{:.3g} GB/s x{}", part.pci->link.bytes_per_s() / 1e9, part.pci->link.lanes);
}

std::vector<std::string> lines_of(const Part& part) {
  std::vector<std::string> lines;
  if (const auto* numa = std::get_if<Numa>(&part.is)) {
    lines.push_back(fmt::format("NUMA node {}{}{}", numa->id, numa->vendor.empty() ? "" : ", ", numa->vendor));
  } else if (const auto* gpu = std::get_if<Gpu>(&part.is)) {
    int links = 0;
    for (const topo::NvLink& link : gpu->nvlinks) links += link.links;
    lines.push_back(gpu->index >= 0 ? fmt::format("GPU {}", gpu->index) : "GPU");
    lines.push_back(place_of(part));
    lines.push_back(link_of(part));
    if (links > 0) lines.push_back(fmt::format("{} NVLinks", links));
  } else if (const auto* nic = std::get_if<Nic>(&part.is)) {
    for (const Port& port : nic->ports) {
      lines.push_back(fmt::format("{}{}{}", shortened(port_name(port)),
                                  port.gbit_per_s > 0 ? fmt::format(", {:g} Gbit/s", port.gbit_per_s) : "", port.up ? "" : ", down"));
    }
    if (nic->ports.empty()) lines.emplace_back("NIC");
    lines.push_back(place_of(part));
    lines.push_back(link_of(part));
  } else {
    lines.push_back("PCI switch " + place_of(part));
  }
  std::erase(lines, "");
  return lines;
}

// Under the pointer.
std::string long_names(const Part& part) {
  std::vector<std::string> names;
  if (const auto* nic = std::get_if<Nic>(&part.is)) {
    for (const Port& port : nic->ports) names.push_back(whole_if_shortened(port_name(port)));
  }
  std::erase(names, "");
  return fmt::format("{}", fmt::join(names, ", "));
}

class Drawing {
 public:
  explicit Drawing(const Topology& topology) : topology_(topology), lines_(topology) {
    double y = heading + gap;
    for (const int part : topology.children(-1)) {
      place(part, gap + lines_.room(-1), y);
      y += boxes_[part].height + gap;
      width_ = std::max(width_, boxes_[part].x + boxes_[part].width + gap);
    }
    height_ = y + line_height + gap;
  }

  std::string document(const std::string& title, int nodes) const {
    double width = std::max(width_, 2 * gap + title_letter * static_cast<double>(title.size()));
    const ChannelPanels channels = channels_svg(topology_, nodes, gap, height_, std::max(width, least_width) - 2 * gap);
    width = std::max(width, channels.width + 2 * gap);
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, height_ + channels.height);
    out += svg::text(gap, heading, title, " font-size=\"15\" font-weight=\"bold\"");
    for (const int part : topology_.children(-1)) draw(part, out);
    out += lines_.drawn(boxes_);
    if (!lines_.empty()) out += svg::text(gap, height_ - gap, "lines: the NIC by which a GPU goes to other machines", " fill=\"#c05a00\"");
    return out + channels.elements + "</svg>\n";
  }

 private:
  // A NUMA node's parts stand beside each other, a switch's below.
  bool beside(int part) const { return std::holds_alternative<Numa>(topology_.part(part).is); }

  void place(int part, double x, double y) {
    const auto lines = lines_of(topology_.part(part));
    size_t longest = 0;
    for (const std::string& line : lines) longest = std::max(longest, line.size());
    Box box{x, y, 2 * gap + letter * static_cast<double>(longest), gap + line_height * static_cast<double>(lines.size())};
    double across = x + gap + (beside(part) ? 0 : lines_.room(part)), down = y + box.height;
    for (const int child : topology_.children(part)) {
      place(child, across, down);
      const Box& placed = boxes_[child];
      box.width = std::max(box.width, placed.x + placed.width + gap - x);
      box.height = std::max(box.height, placed.y + placed.height + gap - y);
      (beside(part) ? across : down) += (beside(part) ? placed.width : placed.height) + gap;
    }
    if (beside(part)) box.height += lines_.room(part);
    boxes_[part] = box;
  }

  void draw(int part, std::string& out) const {
    const Box& box = boxes_.at(part);
    const Look look = look_of(topology_.part(part));
    out += svg::group(long_names(topology_.part(part)));
    out += svg::rect(box, fmt::format(" rx=\"5\" fill=\"{}\" stroke=\"{}\"", look.fill, look.stroke));
    double y = box.y + line_height;
    for (const std::string& line : lines_of(topology_.part(part))) {
      out += svg::text(box.x + gap, y, line);
      y += line_height;
    }
    out += "</g>\n";
    for (const int child : topology_.children(part)) draw(child, out);
  }

  const Topology& topology_;
  WayLines lines_;
  std::map<int, Box> boxes_;  // by part
  double width_ = 0, height_ = 0;
};

}  // namespace

std::string topology_svg(const Topology& topology, const std::string& title, int nodes) { return Drawing(topology).document(title, nodes); }

}  // namespace gyre::perf
