// Lines from GPUs to the NICs by which they go to other machines, led past all boxes that they do not join: down the left side of what
// stands below a NUMA node, from there along the bottom of the NUMA node, and from one NUMA node to another down the left of the picture.
// GPUs with the same NIC share its lane.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedule/svg.h"
#include "topo/topology.h"

namespace gyre::perf {

class WayLines {
 public:
  explicit WayLines(const topo::Topology&);  ///< which must outlive this

  bool empty() const { return nics_.empty(); }
  /// That lanes take beside what a part has in it; -1: beside all.
  double room(int part) const;
  /// `boxes`: of each part.
  std::string drawn(const std::map<int, schedule::svg::Box>& boxes) const;

 private:
  struct Point {
    double x, y;
  };
  const topo::Part& at(int part) const { return topology_.parts[static_cast<size_t>(part)]; }
  /// What a part is or is in: its NUMA node, and that of the NUMA node's children.
  int numa(int part) const;
  int column(int part) const;
  bool has_lane(int part, int nic) const;
  size_t place(int part, int nic) const;  ///< of its lane among the part's
  double lane(int part, int nic) const;   ///< how far from the part's edge
  std::string_view colour(int nic) const;
  /// From the edge of a GPU or NIC to the outermost lane that it takes.
  std::vector<Point> outwards(int part, int nic, const std::map<int, schedule::svg::Box>& boxes) const;

  const topo::Topology& topology_;
  std::vector<std::pair<int, int>> nics_;  // a GPU and its NIC
  std::map<int, std::vector<int>> lanes_;  // of a part, the NICs that have one
};

}  // namespace gyre::perf
