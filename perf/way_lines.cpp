#include "perf/way_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace gyre::perf {
namespace {

constexpr double first_lane = 9, between_lanes = 6;
constexpr std::array<std::string_view, 2> in_turn{"#e07b00", "#8f4a00"};

}  // namespace

WayLines::WayLines(const topo::Topology& topology) : topology_(topology) {
  const auto ways = ways_out(topology);
  const auto gpus = topology.all<topo::Gpu>();
  std::map<int, std::vector<int>> ends;  // of a NIC's lines
  for (size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    if (ways[gpu].empty()) continue;
    const int nic = ways[gpu][0].nic;
    nics_.emplace_back(gpus[gpu], nic);
    ends.try_emplace(nic, std::vector{nic}).first->second.push_back(gpus[gpu]);
  }
  for (const auto& [nic, parts] : ends) {
    std::set<int> columns, numas;
    for (const int part : parts) columns.insert(column(part)), numas.insert(numa(part));
    for (const int each : columns) {
      if (!topology.children(each).empty()) lanes_[each].push_back(nic);
    }
    for (const int each : numas) {
      if (columns.size() > 1) lanes_[each].push_back(nic);
    }
    if (numas.size() > 1) lanes_[-1].push_back(nic);
  }
}

int WayLines::numa(int part) const {
  while (at(part).parent >= 0) part = at(part).parent;
  return part;
}

int WayLines::column(int part) const {
  while (at(at(part).parent).parent >= 0) part = at(part).parent;
  return part;
}

bool WayLines::has_lane(int part, int nic) const { return lanes_.contains(part) && std::ranges::count(lanes_.at(part), nic) > 0; }

double WayLines::room(int part) const { return lanes_.contains(part) ? between_lanes * static_cast<double>(lanes_.at(part).size()) : 0; }

size_t WayLines::place(int part, int nic) const {
  return static_cast<size_t>(std::ranges::find(lanes_.at(part), nic) - lanes_.at(part).begin());
}

double WayLines::lane(int part, int nic) const { return first_lane + between_lanes * static_cast<double>(place(part, nic)); }

// Lanes beside each other differ.
std::string_view WayLines::colour(int nic) const {
  const int outermost = has_lane(-1, nic) ? -1 : has_lane(numa(nic), nic) ? numa(nic) : column(nic);
  return in_turn.at(place(outermost, nic) % in_turn.size());
}

std::vector<WayLines::Point> WayLines::outwards(int part, int nic, const std::map<int, schedule::svg::Box>& boxes) const {
  const schedule::svg::Box &box = boxes.at(part), &around = boxes.at(numa(part)), &beside = boxes.at(column(part));
  std::vector<Point> points;
  if (has_lane(column(part), nic)) {
    points.push_back({box.x, box.y + box.height / 2});
    points.push_back({beside.x + lane(column(part), nic), points.back().y});
  } else {
    points.push_back({box.x + box.width / 2, box.y + box.height});
  }
  if (has_lane(numa(part), nic)) points.push_back({points.back().x, around.y + around.height - lane(numa(part), nic)});
  if (has_lane(-1, nic)) points.push_back({lane(-1, nic), points.back().y});
  return points;
}

std::string WayLines::drawn(const std::map<int, schedule::svg::Box>& boxes) const {
  std::string out;
  for (const auto& [gpu, nic] : nics_) {
    std::vector<Point> points = outwards(gpu, nic, boxes);
    const std::vector<Point> last = outwards(nic, nic, boxes);
    points.insert(points.end(), last.rbegin(), last.rend());
    out += "<polyline points=\"";
    for (const Point& point : points) out += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
    out += fmt::format("\" fill=\"none\" stroke=\"{}\" stroke-width=\"3\" shape-rendering=\"crispEdges\"/>\n", colour(nic));
  }
  return out;
}

}  // namespace gyre::perf
