#include <fmt/format.h>

#include "topo/select.h"

namespace gyre::topo {
namespace {

std::string us(double seconds) { return fmt::format("{:.{}f}", seconds * 1e6, seconds < 1e-4 ? 2 : seconds < 1e-2 ? 1 : 0); }

}  // namespace

std::string explain(const Query& query, const Choice& choice) {
  std::string out = fmt::format("{}, blocks of {:.0f} bytes, {} node{}\n", text(Shape{query.collective, query.ranks, 1, query.root, {}}),
                                query.block_bytes, query.placement.nodes(query.ranks), query.placement.nodes(query.ranks) == 1 ? "" : "s");
  out += fmt::format("predicted times in us, and of what they are made; link inside a node: {}, between nodes: {}\n\n",
                     query.costs.link[inside].name, query.costs.link[between].name);
  out += fmt::format("{:<17} {:<14} {:>8} {:>12} {:>11} {:>12} {:>13} {:>11}  {}\n", "algorithm", "grid", "channels", "time", "latency",
                     "bytes inside", "bytes between", "computing", "held up by");
  const Candidate* rule = rule_of_thumb(query, choice);
  for (const Candidate& c : choice.candidates) {
    const std::string grid = c.shape.grid.empty() ? "" : fmt::format("{}", fmt::join(c.shape.grid, "x"));
    if (!c.refused.empty()) {
      out += fmt::format("{:<17} {:<14} {:>8} refused: {}\n", c.family, grid, c.shape.channels, c.refused);
      continue;
    }
    out += fmt::format("{:<17} {:<14} {:>8} {:>12} {:>11} {:>12} {:>13} {:>11}  {}{}\n", c.family, grid, c.shape.channels,
                       us(c.price.seconds), us(c.price.latency), us(c.price.bytes[inside]), us(c.price.bytes[between]),
                       us(c.price.computing), c.price.limit, &c == rule ? "; the rule of thumb's" : "");
  }
  return out;
}

}  // namespace gyre::topo
