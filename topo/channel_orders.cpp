#include "topo/channel_orders.h"

#include <algorithm>

namespace gyre::topo {

std::vector<schedule::RankOrder> along_rings(const ChannelOrders& channels, const Shape& shape, Rank root) {
  const auto& rings = channels.rings;
  std::vector<schedule::RankOrder> orders;
  for (size_t channel = 0; channel < shape.channels; ++channel) {
    schedule::RankOrder order = rings[channel % rings.size()];
    const bool against = channel / rings.size() % 2 == 1;
    if ((channel % 2 == 1) != against) std::ranges::reverse(order);
    if (rooted(shape.collective)) {
      const auto from = std::ranges::find(order, root) - order.begin() + std::ssize(order) - shape.root;
      std::rotate(order.begin(), order.begin() + from % std::ssize(order), order.end());
    }
    orders.push_back(std::move(order));
  }
  return orders;
}

std::vector<schedule::RankOrder> along_chains(const ChannelOrders& channels, const Shape& shape, Rank root) {
  const auto& chains = channels.chains;
  const int per_node = shape.grid.empty() ? 1 : shape.grid[0];
  std::vector<schedule::RankOrder> orders;
  for (size_t channel = 0; channel < 2 * size_t{shape.channels}; ++channel) {
    schedule::RankOrder order = chains[channel % chains.size()];
    for (auto node = order.begin(); node != order.end(); node += per_node) {
      if (channel % 2 == 1) std::reverse(node, node + per_node);  // whose chains begin at the last position
      const auto found = rooted(shape.collective) ? std::find(node, node + per_node, root) : node + per_node;
      if (found == node + per_node) continue;
      const auto from = (found - node) + per_node - shape.root % per_node;
      std::rotate(node, node + from % per_node, node + per_node);
    }
    orders.push_back(std::move(order));
  }
  return orders;
}

}  // namespace gyre::topo
