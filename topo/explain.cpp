#include <fmt/format.h>

#include <algorithm>

#include "topo/select.h"

namespace gyre::topo {
namespace {

std::string us(double seconds) { return fmt::format("{:.{}f}", seconds * 1e6, seconds < 1e-4 ? 2 : seconds < 1e-2 ? 1 : 0); }

std::string row(std::string_view family, std::string_view grid, uint32_t channels, double seconds, const Price& price,
                const std::string& weight, std::string_view note) {
  return fmt::format("{:<17} {:<14} {:>8} {:>12} {:>12} {:>11} {:>12} {:>13} {:>11}  {}{}{}\n", family, grid, channels, us(seconds), weight,
                     us(price.latency), us(price.bytes[inside]), us(price.bytes[between]), us(price.computing), price.limit,
                     note.empty() ? "" : "; ", note);
}
std::string refused(std::string_view family, std::string_view grid, uint32_t channels, std::string_view why) {
  return fmt::format("{:<17} {:<14} {:>8} refused: {}\n", family, grid, channels, why);
}

// Of what decides, and who else would take it.
std::string note(const Candidate& candidate, bool rule) {
  if (candidate.measured) return "by its times, not its price";
  if (candidate.by_packets || candidate.mapped) return "but in CUDA graphs";
  const std::string_view played = candidate.simulated ? "by its simulated time, not its price" : "";
  return fmt::format("{}{}{}", played, candidate.simulated && rule ? "; " : "", rule ? "the rule of thumb's" : "");
}

// What decides. Times need not be of all.
std::string_view basis(const Choice& choice) {
  if (std::ranges::any_of(choice.candidates, [](const Candidate& c) { return c.measured.has_value(); }))
    return "times, where there are some";
  const bool played = std::ranges::any_of(choice.candidates, [](const Candidate& c) { return c.simulated.has_value(); });
  return played ? "simulation of those near the lightest" : "prices";
}

}  // namespace

std::string explain(const Query& query, const Choice& choice, std::span<const DirectCandidate> direct) {
  std::string out = fmt::format("{}, blocks of {:.0f} bytes, {} node{}\n", text(Shape{query.collective, query.ranks, 1, query.root, {}}),
                                query.block_bytes, query.placement.nodes(query.ranks), query.placement.nodes(query.ranks) == 1 ? "" : "s");
  out += fmt::format(
      "predicted times in us, of what prices are made, and the weights that decide, by {}; links inside a node: {}, between: {}\n\n",
      basis(choice), query.costs.link[inside].name, query.costs.link[between].name);
  out += fmt::format("{:<17} {:<14} {:>8} {:>12} {:>12} {:>11} {:>12} {:>13} {:>11}  {}\n", "algorithm", "grid", "channels", "time",
                     "weight", "latency", "bytes inside", "bytes between", "computing", "held up by");
  const Candidate* rule = rule_of_thumb(query, choice);
  for (const DirectCandidate& c : direct) {
    out += c.refused.empty() ? row(c.family, c.form, 1, c.price.seconds, c.price, "", c.when) : refused(c.family, c.form, 1, c.refused);
  }
  for (const Candidate& c : choice.candidates) {
    const std::string grid = c.shape.grid.empty() ? "" : fmt::format("{}", fmt::join(c.shape.grid, "x"));
    out += c.refused.empty() ? row(c.family, grid, c.shape.channels, predicted(c), c.price, us(weighed(query, c)), note(c, &c == rule))
                             : refused(c.family, grid, c.shape.channels, c.refused);
  }
  return out;
}

}  // namespace gyre::topo
