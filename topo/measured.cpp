#include "topo/measured.h"

#include <algorithm>

#include "topo/json_object.h"

namespace gyre::topo {
namespace {

constexpr double per_us = 1e6;
constexpr size_t most_sizes = 1024;

Result<std::vector<double>> sizes(const JsonObject& from) {
  const auto count = from.value().contains("bytes") ? from.value()["bytes"].size() : 0;
  if (count < 1 || count > most_sizes) return from.wrong("bytes", fmt::format("must be 1 to {} sizes", most_sizes));
  std::vector<double> out = GYRE_TRY(from.numbers("bytes", count, 1));
  if (std::ranges::adjacent_find(out, std::greater_equal()) != out.end()) return from.wrong("bytes", "must rise");
  return out;
}

Result<MeasuredTimes> times(const JsonObject& from, size_t count) {
  GYRE_TRY(from.only({"algorithm", "grid", "us"}));
  MeasuredTimes out;
  out.family = GYRE_TRY(from.word("algorithm"));
  for (const double extent : GYRE_TRY(from.numbers("grid", from.value().contains("grid") ? from.value()["grid"].size() : 0, 1)))
    out.grid.push_back(static_cast<int>(std::min(extent, 1e6)));
  out.seconds = GYRE_TRY(from.numbers("us", count, per_us));
  return out;
}

Result<Measured> measured(const JsonObject& from) {
  GYRE_TRY(from.only({"collective", "ranks", "per_node", "bytes", "times"}));
  Measured out;
  const std::string collective = GYRE_TRY(from.word("collective"));
  const auto collectives = all_collectives();
  const auto known = std::ranges::find(collectives, collective, [](Collective c) { return name(c); });
  if (known == collectives.end()) return from.wrong("collective", "there is none of this name");
  out.collective = *known;
  out.ranks = GYRE_TRY(from.whole("ranks"));
  if (from.value().contains("per_node")) out.per_node = GYRE_TRY(from.whole("per_node"));
  out.bytes = GYRE_TRY(sizes(from));
  for (const JsonObject& one : GYRE_TRY(from.objects("times"))) out.times.push_back(GYRE_TRY(times(one, out.bytes.size())));
  return out;
}

}  // namespace

Result<std::vector<Measured>> parse_measured(const JsonObject& machine, const std::string& key) {
  std::vector<Measured> all;
  if (!machine.value().contains(key)) return all;
  for (const JsonObject& one : GYRE_TRY(machine.objects(key))) all.push_back(GYRE_TRY(measured(one)));
  return all;
}

std::optional<double> measured_seconds(std::span<const Measured> all, std::string_view family, const Shape& shape, int per_node,
                                       double block_bytes) {
  const auto of = std::ranges::find_if(
      all, [&](const Measured& m) { return m.collective == shape.collective && m.ranks == shape.ranks && m.per_node == per_node; });
  if (of == all.end()) return {};
  const auto found = std::ranges::find_if(of->times, [&](const MeasuredTimes& t) { return t.family == family && t.grid == shape.grid; });
  if (found == of->times.end()) return {};
  const std::vector<double>&bytes = of->bytes, &seconds = found->seconds;
  const auto above = static_cast<size_t>(std::ranges::lower_bound(bytes, block_bytes) - bytes.begin());
  if (above == 0) return seconds.front();
  if (above == bytes.size()) return bytes.back() > 0 ? seconds.back() * (block_bytes / bytes.back()) : seconds.back();
  const double part = (block_bytes - bytes[above - 1]) / (bytes[above] - bytes[above - 1]);
  return seconds[above - 1] + part * (seconds[above] - seconds[above - 1]);
}

}  // namespace gyre::topo
