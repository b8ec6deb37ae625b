#include "perf/channel_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "perf/topology_text.h"
#include "schedule/svg.h"

namespace gyre::perf {
namespace {

namespace svg = schedule::svg;

constexpr double box_height = 20, between_boxes = 16, between_rows = 18, beside_rows = 34, above_rows = 22, name_letter = 6.8,
                 tip_before = 2;
constexpr std::string_view of_gpu = " fill=\"#e3f1dc\" stroke=\"#5c9a3c\"", of_port = " fill=\"#dde8f6\" stroke=\"#3f72af\"";

std::string stroke_along(const std::string& path) { return fmt::format("<path d=\"{}\" fill=\"none\"/>\n", path); }

double width_for(const std::vector<std::string>& names) {
  const auto longest = std::ranges::max_element(names, {}, &std::string::size);
  return 12 + name_letter * static_cast<double>(std::min(longest->size(), most_of_name));
}

// An arrow's head with its tip there, turned clockwise from one that points to the right.
std::string head(double x, double y, int degrees) {
  return fmt::format(
      "<path d=\"M0 0 l-6 -4 v8 z\" transform=\"translate({:.1f} {:.1f}) rotate({})\" fill=\"currentColor\" stroke=\"none\"/>\n", x, y,
      degrees);
}

}  // namespace

ChannelPanel::ChannelPanel(const topo::JobChannel& channel, const NodeNames& names)
    : channel_(channel), names_(names), rails_(channel.through[0].in >= 0), at_(channel.chain.size()) {
  for (size_t i = 0; i < channel.chain.size(); ++i) at_[static_cast<size_t>(channel.chain[i])] = i;
  gpu_width_ = width_for(names.gpus);
  rail_width_ = rails_ ? width_for(names.rails) : gpu_width_;
}

double ChannelPanel::width() const { return place(0, boxes() - 1).x + rail_width_ / 2 + beside_rows; }
double ChannelPanel::title_at() { return beside_rows; }
double ChannelPanel::height() const { return above_rows + static_cast<double>(nodes()) * (box_height + between_rows); }

ChannelPanel::Place ChannelPanel::place(size_t node, size_t box) const {
  double x = beside_rows + rail_width_ / 2;
  if (box > 0) x += (rail_width_ + gpu_width_) / 2 + between_boxes + static_cast<double>(box - 1) * (gpu_width_ + between_boxes);
  if (rails_ && box + 1 == boxes()) x += (rail_width_ - gpu_width_) / 2;
  return {x, above_rows + box_height / 2 + static_cast<double>(node) * (box_height + between_rows)};
}

ChannelPanel::Place ChannelPanel::place(Rank rank) const {
  const size_t at = at_[static_cast<size_t>(rank)], gpus = names_.gpus.size();
  return place(at / gpus, at % gpus + (rails_ ? 1 : 0));
}

bool ChannelPanel::backwards(size_t node) const {
  const size_t first = node * names_.gpus.size();
  return channel_.ring[first] != channel_.chain[first];
}

const std::string& ChannelPanel::rail(size_t node, bool left) const {
  const topo::Channel& through = channel_.through[node];
  return names_.rails[static_cast<size_t>(left != backwards(node) ? through.in : through.out)];
}

std::string ChannelPanel::box(Place at, double width, const std::string& name, std::string_view look) {
  return svg::group(whole_if_shortened(name)) +
         svg::rect({at.x - width / 2, at.y - box_height / 2, width, box_height}, fmt::format(" rx=\"4\"{}", look)) +
         svg::text(at.x, at.y + 4, shortened(name), " text-anchor=\"middle\" stroke=\"none\" font-size=\"11\"") + "</g>\n";
}

std::string ChannelPanel::row(size_t node) const {
  const size_t gpus = names_.gpus.size();
  std::string out;
  for (size_t i = 0; i + 1 < boxes(); ++i) {
    const double x = place(node, i).x + width_of(i) / 2, y = place(node, i).y;
    out += svg::line(x, y, x + between_boxes, y, "");
    out += backwards(node) ? head(x + tip_before, y, 180) : head(x + between_boxes - tip_before, y, 0);
  }
  const std::string text = " stroke-width=\"1\"";
  for (const bool left : {true, false}) {
    if (rails_) out += box(place(node, left ? 0 : boxes() - 1), rail_width_, rail(node, left), std::string(of_port) + text);
  }
  for (size_t i = 0; i < gpus; ++i) {
    const Rank rank = channel_.chain[node * gpus + i];
    const bool root = channel_.tree.nodes[static_cast<size_t>(rank)].parent < 0;
    out += box(place(rank), gpu_width_, names_.gpus[static_cast<size_t>(rank) % gpus],
               root ? " fill=\"#e3f1dc\" stroke-width=\"2.5\"" : std::string(of_gpu) + text);
  }
  return out;
}

// From where the ring leaves a node to where it comes to the next: straight down on one side, below the row and around its beginning, or,
// from the last to the first, around all, on a line of its own.
std::string ChannelPanel::ring_between(size_t node) const {
  const size_t next = (node + 1) % nodes(), last = boxes() - 1;
  if (nodes() == 1 && names_.gpus.size() < 2) return {};
  const bool from_left = backwards(node), to_left = !backwards(next), wraps = next <= node;
  const Place from = place(node, from_left ? 0 : last), to = place(next, to_left ? 0 : last);
  const double half = box_height / 2, out = to_left ? -1 : 1, edge = to.x + out * rail_width_ / 2, beside = edge + out * (wraps ? 22 : 10);
  if (from_left == to_left && !wraps) return svg::line(from.x, from.y + half, to.x, to.y - half, "") + head(to.x, to.y - half, 90);
  const std::string begin = from_left == to_left ? fmt::format("M{:.1f} {:.1f}", edge, from.y)
                                                 : fmt::format("M{:.1f} {:.1f} v{:.1f}", from.x, from.y + half, between_rows / 2);
  return stroke_along(fmt::format("{} H{:.1f} V{:.1f} H{:.1f}", begin, beside, to.y, edge)) +
         head(edge + out * tip_before, to.y, to_left ? 0 : 180);
}

// Between nodes a tree goes by the ports at the rows' beginnings.
std::string ChannelPanel::band(Rank parent, Rank child) const {
  const Place from = place(parent), to = place(child);
  if (from.y == to.y) return stroke_along(fmt::format("M{:.1f} {:.1f} H{:.1f}", from.x, from.y, to.x));
  const double x = place(size_t{0}, size_t{0}).x, rows = std::abs(from.y - to.y) / (box_height + between_rows);
  const double bulge = rows < 1.5 ? x : x - rail_width_ / 2 - 10 * std::min(rows, 4.5);
  return stroke_along(fmt::format("M{:.1f} {:.1f} H{:.1f} C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f} H{:.1f}", from.x, from.y, x, bulge,
                                  from.y, bulge, to.y, x, to.y, to.x));
}

std::string ChannelPanel::drawn(double x, double y, const std::string& title, std::string_view colour) const {
  std::string out = fmt::format("<g transform=\"translate({:.1f} {:.1f})\">\n", x, y);
  out += svg::text(title_at(), above_rows - 8, title, fmt::format(" fill=\"{}\" font-weight=\"bold\"", colour));
  out += fmt::format("<g stroke=\"{}\" stroke-width=\"10\" stroke-opacity=\"0.22\">\n", colour);
  for (size_t rank = 0; rank < channel_.tree.nodes.size(); ++rank) {
    const Rank parent = channel_.tree.nodes[rank].parent;
    if (parent >= 0) out += band(parent, static_cast<Rank>(rank));
  }
  out += fmt::format("</g>\n<g stroke=\"{0}\" color=\"{0}\" stroke-width=\"1.6\">\n", colour);
  for (size_t node = 0; node < nodes(); ++node) out += ring_between(node) + row(node);
  return out + "</g>\n</g>\n";
}

}  // namespace gyre::perf
