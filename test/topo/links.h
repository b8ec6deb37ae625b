// Links of machines that are not here.
#pragma once
#include "topo/node_links.h"

namespace gyre::test {

/// GPUs without NVLinks, so many below each switch, so many switches at each socket.
inline topo::NodeLinks sockets(int count, int switches, int below) {
  topo::NodeLinks links;
  links.gpus = count * switches * below;
  for (int a = 0; a < links.gpus; ++a) {
    links.switched.push_back(0);
    for (int b = 0; b < links.gpus; ++b) {
      links.direct.push_back(0);
      links.distance.push_back(a == b                                             ? topo::Distance::same
                               : a / below == b / below                           ? topo::Distance::one_switch
                               : a / (switches * below) == b / (switches * below) ? topo::Distance::switches
                                                                                  : topo::Distance::system);
    }
  }
  return links;
}

/// With so many NVLinks of each GPU to switches.
inline topo::NodeLinks switched(int gpus, int nvlinks) {
  topo::NodeLinks links = sockets(1, 1, gpus);
  links.switched.assign(static_cast<size_t>(gpus), nvlinks);
  return links;
}

/// Like a DGX-1 of V100s: a cube whose faces have diagonals, some of its edges double.
inline topo::NodeLinks mesh() {
  topo::NodeLinks links = sockets(2, 2, 2);
  constexpr int edges[][3] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
                              {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  for (const auto& [a, b, count] : edges) links.direct[links.at(a, b)] = links.direct[links.at(b, a)] = count;
  return links;
}

/// Like a DGX of 8 GPUs at switches, with a port for each.
inline topo::NodeLinks dgx() {
  topo::NodeLinks links = switched(8, 18);
  for (int gpu = 0; gpu < 8; ++gpu) links.rails.push_back({gpu, 0, {gpu}});
  return links;
}

}  // namespace gyre::test
