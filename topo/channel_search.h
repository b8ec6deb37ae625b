// The search behind channels.h. Private to it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "topo/node_links.h"

namespace gyre::topo {

/// Where an order begins and ends; empty: anywhere.
struct Ends {
  std::vector<int> first;
  std::vector<int> last;
  bool closes = false;  ///< it is a ring: the last deals with the first
};

/// NVLinks that orders have taken, each in one direction.
class TakenLinks {
 public:
  explicit TakenLinks(const NodeLinks& links)
      : links_(links), direct_(links.direct.size()), out_(links.switched.size()), in_(links.switched.size()) {}

  bool free(int from, int to) const { return free_direct(from, to) > 0 || free_switched(from, to); }
  int free_direct(int from, int to) const { return links_.direct[links_.at(from, to)] - direct_[links_.at(from, to)]; }
  /// Requires: one is free. What it was, for give().
  bool take(int from, int to);
  void give(int from, int to, bool direct);

 private:
  bool free_switched(int from, int to) const {
    const auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
    return links_.reaches(from, to) && links_.switched[f] > out_[f] && links_.switched[t] > in_[t];
  }
  const NodeLinks& links_;
  std::vector<int> direct_;
  std::vector<int> out_, in_;  // [gpu]: of those to switches
};

/// Orders over NVLinks, each used once each way, found by depth-first search that gives up after so many steps, so that it ends; the
/// reverse of an order is looked at first, since it uses what that left of the same links. Empty: none were found.
std::vector<std::vector<int>> orders_over_nvlinks(const NodeLinks&, std::span<const Ends>, TakenLinks&, int most_steps);
/// The order whose hops are nearest: fewest between sockets, then through a host bridge, and so on, NVLinks the nearest of all; found by
/// branch and bound, the best so far after as many steps.
std::vector<int> nearest_order(const NodeLinks&, const Ends&, int most_steps);

}  // namespace gyre::topo
