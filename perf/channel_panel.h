// A channel as a small picture: its ring as arrows from GPU to GPU and from port to port, its tree as a pale band below them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "topo/job_channels.h"

namespace gyre::perf {

/// What stands in the boxes of a node.
struct NodeNames {
  std::vector<std::string> gpus;
  std::vector<std::string> rails;
};

class ChannelPanel {
 public:
  /// Both must outlive this.
  ChannelPanel(const topo::JobChannel& channel, const NodeNames& names);

  double width() const;  ///< without the title
  double height() const;
  static double title_at();
  std::string drawn(double x, double y, const std::string& title, std::string_view colour) const;

 private:
  struct Place {
    double x, y;
  };
  /// Of the node's row, from the left: a box for a rail, where there are any, one for each GPU in the chain's order, and for a rail.
  Place place(size_t node, size_t box) const;
  Place place(Rank) const;
  std::string row(size_t node) const;
  std::string ring_between(size_t node) const;
  std::string band(Rank parent, Rank child) const;
  static std::string box(Place, double width, const std::string& name, std::string_view look);
  /// The ring passes the row from the right to the left.
  bool backwards(size_t node) const;
  const std::string& rail(size_t node, bool left) const;
  double width_of(size_t box) const { return box == 0 || box + 1 == boxes() ? rail_width_ : gpu_width_; }
  size_t nodes() const { return channel_.through.size(); }
  size_t boxes() const { return names_.gpus.size() + (rails_ ? 2 : 0); }

  const topo::JobChannel& channel_;
  const NodeNames& names_;
  bool rails_;
  std::vector<size_t> at_;  // of each rank, its place in the chain
  double gpu_width_ = 0;
  double rail_width_ = 0;  // of a row's ends: a GPU's where there are no rails
};

}  // namespace gyre::perf
