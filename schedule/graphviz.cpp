#include "schedule/graphviz.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "schedule/print.h"
#include "schedule/simulate.h"

namespace gyre::schedule {
namespace {

// Legible on white, and apart from each other for the colour-blind too; channels take them in turn.
constexpr std::string_view channel_colours[] = {"#2f6db3", "#c8552b", "#2e8b6f", "#8a5ab5", "#b08a1e", "#6b7785"};

// All that goes from one rank to another on a channel, or both ways alike.
struct Edge {
  uint32_t channel = 0;
  Rank from = 0;
  Rank to = 0;
  std::vector<uint32_t> hops;  // of each message, sorted
  double chunks = 0;
  std::string messages;  // a line each
  bool both = false;     // the other direction has messages at the same hops
};

// "1-3, 5": sorted numbers.
std::string ranges(const std::vector<uint32_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] <= numbers[last] + 1) ++last;
    out += out.empty() ? "" : ", ";
    out += numbers[i] == numbers[last] ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return out;
}

std::vector<Edge> edges_of(const Schedule& schedule, const Simulation& hops) {
  std::map<std::tuple<uint32_t, Rank, Rank>, Edge> edges;
  for (const MessageTime& message : hops.messages) {
    const StepTime& sender = hops.steps[message.sender];
    const Program& program = schedule.programs[sender.program];
    const Step& step = program.steps[sender.position.cursor.step];
    Edge& edge = edges[{program.channel, message.from, message.to}];
    const auto hop = static_cast<uint32_t>(std::lround(message.arrival));
    edge.channel = program.channel;
    edge.from = message.from;
    edge.to = message.to;
    edge.hops.push_back(hop);
    edge.chunks += step.flow().count;
    edge.messages += fmt::format("hop {}: {}\\n", hop, describe(schedule, step));
  }
  std::vector<Edge> out;
  for (auto& [key, edge] : edges) std::sort(edge.hops.begin(), edge.hops.end());
  for (auto& [key, edge] : edges) {
    const auto back = edges.find({edge.channel, edge.to, edge.from});
    edge.both = back != edges.end() && back->second.hops == edge.hops;
    if (edge.both && edge.from > edge.to) continue;
    if (edge.both) edge.messages += back->second.messages;
    out.push_back(edge);
  }
  return out;
}

// On every channel that has messages.
bool are_trees(const Schedule& schedule, const std::vector<Edge>& edges) {
  std::map<uint32_t, std::set<std::pair<Rank, Rank>>> pairs;
  for (const Edge& edge : edges) pairs[edge.channel].insert(std::minmax(edge.from, edge.to));
  const auto tree = [&](const auto& channel) { return channel.second.size() + 1 == static_cast<size_t>(schedule.ranks); };
  return schedule.ranks > 2 && std::all_of(pairs.begin(), pairs.end(), tree);
}

// Trees hang from their roots, one for each channel; nodes are frames around their ranks; all else stands around a circle, in order.
enum class Picture : uint8_t { trees, nodes, circle };

// In a tree, whoever is nearer to where the messages meet, or come from, stands higher.
bool points_up(const Schedule& schedule, const Edge& edge, const std::vector<Edge>& edges) {
  if (schedule.collective == Collective::reduce || schedule.collective == Collective::gather) return true;
  const auto first_of = [&](Rank from, Rank to) {
    uint32_t first = UINT32_MAX;
    for (const Edge& other : edges) {
      if (other.channel == edge.channel && other.from == from && other.to == to) first = std::min(first, other.hops.front());
    }
    return first;
  };
  const uint32_t back = first_of(edge.to, edge.from);
  return back != UINT32_MAX ? edge.hops.front() < back : false;
}

// "r3"; of several trees: "c1r3".
std::string id(Picture picture, uint32_t channel, Rank rank) {
  return picture == Picture::trees ? fmt::format("c{}r{}", channel, rank) : fmt::format("r{}", rank);
}

std::string rank_text(const Schedule& schedule, Picture picture, uint32_t channel, Rank rank) {
  std::string out = fmt::format("{} [label=\"{}\"", id(picture, channel, rank), rank);
  if (rooted(schedule.collective) && rank == schedule.root) out += ", shape=doublecircle";
  if (picture == Picture::circle) {
    const double angle = 2 * std::numbers::pi * rank / schedule.ranks;
    const double inches = std::max(1.3, 0.26 * schedule.ranks);
    out += fmt::format(", pos=\"{:.2f},{:.2f}!\"", inches * std::sin(angle), inches * std::cos(angle));
  }
  return out + "]\n";
}

std::string ranks_of(const Schedule& schedule, Picture picture, std::span<const int> node_of) {
  std::map<int, std::string> frames;  // by channel or node
  for (uint32_t channel = 0; channel < (picture == Picture::trees ? schedule.channels : 1); ++channel) {
    for (Rank rank = 0; rank < schedule.ranks; ++rank) {
      const int frame = picture == Picture::trees   ? static_cast<int>(channel)
                        : picture == Picture::nodes ? node_of[static_cast<size_t>(rank)]
                                                    : 0;
      frames[frame] += "  " + rank_text(schedule, picture, channel, rank);
    }
  }
  if (frames.size() == 1) return frames.begin()->second;
  std::string out;
  for (const auto& [frame, ranks] : frames) {
    const std::string_view what = picture == Picture::trees ? "channel" : "node";
    out += fmt::format("  subgraph cluster_{} {{\n  label=\"{} {}\"\n{}  }}\n", frame, what, frame, ranks);
  }
  return out;
}

std::string edge_text(Picture picture, const Edge& edge, bool up, double most) {
  const std::string_view colour = channel_colours[edge.channel % std::size(channel_colours)];
  return fmt::format("  {} -> {} [label=\" {} \", color=\"{}\", fontcolor=\"{}\", penwidth={:.1f}{}, tooltip=\"channel {}\\n{}\"]\n",
                     id(picture, edge.channel, up ? edge.to : edge.from), id(picture, edge.channel, up ? edge.from : edge.to),
                     ranges(edge.hops), colour, colour, 1 + 2 * edge.chunks / most,
                     edge.both ? ", dir=both"
                     : up      ? ", dir=back"
                               : "",
                     edge.channel, edge.messages);
}

}  // namespace

Result<std::string> graphviz(const Schedule& schedule, std::span<const int> node_of) {
  const Simulation hops = GYRE_TRY(hop_by_hop(schedule));
  const std::vector<Edge> edges = edges_of(schedule, hops);
  const bool several_nodes = std::any_of(node_of.begin(), node_of.end(), [](int node) { return node != 0; });
  const Picture picture = several_nodes ? Picture::nodes : are_trees(schedule, edges) ? Picture::trees : Picture::circle;
  double most = 0;
  for (const Edge& edge : edges) most = std::max(most, edge.chunks);

  const std::string kind = fmt::format("{} {}", schedule.family, name(schedule.collective));
  const auto count = std::lround(hops.finish);
  std::string out = fmt::format("digraph \"{}\" {{\n", kind);
  out += fmt::format("  graph [layout={}, labelloc=t, fontname=\"Helvetica\", fontsize=14, nodesep=0.6, ranksep=0.9, splines=true,\n",
                     picture == Picture::circle ? "neato" : "dot");
  out += fmt::format("    bgcolor=white, style=rounded, color=\"#c3cad3\", label=\"{} for {} rank{}: {} hop{}\\n", kind, schedule.ranks,
                     schedule.ranks == 1 ? "" : "s", count, count == 1 ? "" : "s");
  out += "arrows: the hops at which messages go; width: their bytes\\n \"]\n";
  out += "  node [shape=circle, width=0.55, fixedsize=true, style=filled, fillcolor=\"#e8eff8\", color=\"#2f6db3\",\n";
  out += "    fontname=\"Helvetica\", fontsize=14]\n";
  out += "  edge [fontname=\"Helvetica\", fontsize=11, arrowsize=0.7]\n";
  out += ranks_of(schedule, picture, node_of);
  for (const Edge& edge : edges) {
    out += edge_text(picture, edge, picture == Picture::trees && !edge.both && points_up(schedule, edge, edges), most);
  }
  return out + "}\n";
}

}  // namespace gyre::schedule
