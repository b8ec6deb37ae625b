#include "perf/machine.h"

#include <fmt/format.h>

#include "schedule/time_axis.h"

namespace gyre::perf {
namespace {

constexpr double microsecond = 1e-6;
constexpr double gigabyte = 1e9;

std::string link_text(const schedule::LinkClass& link) {
  return fmt::format("{} links of {} and {:g} GB/s", link.name, schedule::time_text(link.alpha), 1 / link.beta / gigabyte);
}

}  // namespace

topo::Graph example_machine(int nodes, int ranks_per_node) {
  const schedule::LinkClass local{"local", 1 * microsecond, 1 / (20 * gigabyte), 0.2 * microsecond, false, {}};
  const schedule::LinkClass network{"network", 4 * microsecond, 1 / (10 * gigabyte), 0.2 * microsecond, false, {}};
  const double memory = 1 / (40 * gigabyte);
  return topo::clusters(nodes, ranks_per_node, local, network, {memory, memory, 0.2 * microsecond});
}

std::string text(const topo::Graph& graph) {
  if (graph.nodes() == 1) return "one node with " + link_text(graph.local);
  return fmt::format("{} nodes with {}, {}", graph.nodes(), link_text(graph.local), link_text(graph.network));
}

}  // namespace gyre::perf
