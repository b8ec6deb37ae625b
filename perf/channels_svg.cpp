#include "perf/channels_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "perf/channel_panel.h"
#include "perf/topology_text.h"
#include "schedule/svg.h"

namespace gyre::perf {
namespace {

namespace svg = schedule::svg;
using topo::JobChannel, topo::Topology;

constexpr int most_nodes_drawn = 8;
constexpr double legend_line = 17, legend_width = 600, between_panels = 14, bold_letter = 7.5;
// Those who see fewer of them tell them apart, too.
constexpr std::array<std::string_view, 8> panel_colours{"#0072b2", "#d55e00", "#009e73", "#aa4499",
                                                        "#333333", "#997700", "#882255", "#3399cc"};

// Its number, or its address within the domain.
std::string gpu_label(const Topology& topology, int gpu) {
  const topo::Part& part = topology.part(gpu);
  const int index = topology.gpu(gpu).index;
  if (index >= 0) return fmt::format("{}", index);
  const std::string address = part.pci ? text(part.pci->address) : "GPU";
  return address.substr(address.find(':') + 1);
}

NodeNames node_names(const Topology& topology, const topo::NodeLinks& links) {
  NodeNames names;
  for (const int gpu : topology.all<topo::Gpu>()) names.gpus.push_back(gpu_label(topology, gpu));
  for (const topo::Rail& rail : links.rails) names.rails.push_back(port_name(topology.port(rail.nic, rail.port)));
  return names;
}

// Channels that are alike, by their numbers.
std::vector<std::vector<size_t>> alike(const std::vector<JobChannel>& channels) {
  std::vector<std::vector<size_t>> groups;
  std::map<uint64_t, size_t> known;
  for (size_t channel = 0; channel < channels.size(); ++channel) {
    const auto [group, first] = known.emplace(topo::digest({&channels[channel], 1}), groups.size());
    if (first) groups.emplace_back();
    groups[group->second].push_back(channel);
  }
  return groups;
}

std::string channels_heading(int nodes, int drawn) {
  if (nodes == 1) return "Channels";
  if (drawn == nodes) return fmt::format("Channels over {} such nodes", nodes);
  return fmt::format("Channels of a job of {} nodes, as an example: yours has {}", drawn, nodes);
}

}  // namespace

ChannelPanels channels_svg(const Topology& topology, int nodes, double x, double y, double width) {
  const topo::NodeLinks links = node_links(topology);
  if (links.gpus == 0) return {};
  const int drawn = std::min(nodes, most_nodes_drawn);
  const auto channels = *topo::job_channels(topo::equal_nodes(links, drawn));
  const NodeNames names = node_names(topology, links);
  ChannelPanels out{{}, legend_width, 0};
  double across = x, down = y + legend_line;
  out.elements = svg::text(x, down, channels_heading(nodes, drawn), " font-size=\"15\" font-weight=\"bold\"");
  std::vector<std::string> legend{"arrows: a ring; pale band: a tree, the thick frame is its root"};
  const char* const ends = links.rails.empty() ? "" : ", and at the ends the ports by which the channel comes and goes";
  if (nodes > 1) legend.insert(legend.begin(), fmt::format("a row is a node: its GPUs{}", ends));
  for (const std::string& words : legend) out.elements += svg::text(x, down += legend_line, words, " fill=\"#444\"");
  down += between_panels;
  double row_height = 0;
  size_t turn = 0;
  for (const std::vector<size_t>& same : alike(channels)) {
    const ChannelPanel panel(channels[same[0]], names);
    const std::string title = fmt::format("channel{} {}", same.size() == 1 ? "" : "s", fmt::join(same, ", "));
    const double panel_width = std::max(panel.width(), panel.title_at() + bold_letter * static_cast<double>(title.size()));
    if (across > x && across + panel_width > x + width) across = x, down += row_height + between_panels;
    out.elements += panel.drawn(across, down, title, panel_colours.at(turn++ % panel_colours.size()));
    across += panel_width + between_panels;
    row_height = panel.height();
    out.width = std::max(out.width, across - x - between_panels);
  }
  out.height = down + row_height - y;
  return out;
}

}  // namespace gyre::perf
