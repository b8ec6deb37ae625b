#include "topo/measured.h"

#include <algorithm>
#include <utility>

#include "topo/algorithms.h"
#include "topo/json_object.h"

namespace gyre::topo {
namespace {

constexpr size_t most_sizes = 1024;
constexpr uint64_t most_bytes = uint64_t{1} << 60;

Result<std::vector<double>> sizes(const JsonObject& from) {
  if (!from.value().contains("bytes")) return from.wrong("bytes", "is missing");
  const nlohmann::json& given = from.value()["bytes"];
  const auto right = [](const nlohmann::json& n) { return n.is_number_unsigned() && n.get<uint64_t>() <= most_bytes; };
  if (!given.is_array() || given.empty() || given.size() > most_sizes || !std::ranges::all_of(given, right))
    return from.wrong("bytes", fmt::format("must be 1 to {} whole numbers up to 2^60", most_sizes));
  std::vector<double> out;
  for (const nlohmann::json& n : given) out.push_back(n.get<double>());
  if (std::ranges::adjacent_find(out, std::greater_equal()) != out.end()) return from.wrong("bytes", "must rise");
  return out;
}

Result<std::vector<int>> grid(const JsonObject& from, int ranks) {
  if (!from.value().contains("grid") || !from.value()["grid"].is_array()) return from.wrong("grid", "must be a list");
  std::vector<int> out;
  int64_t places = 1;
  for (const nlohmann::json& extent : from.value()["grid"]) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > static_cast<uint64_t>(ranks))
      return from.wrong("grid", "has other extents");
    out.push_back(extent.get<int>());
    places = std::min<int64_t>(places * out.back(), int64_t{ranks} + 1);
  }
  if (!out.empty() && places != ranks) return from.wrong("grid", fmt::format("has not {} places", ranks));
  return out;
}

Result<MeasuredTimes> times(const JsonObject& from, const Measured& of) {
  GYRE_TRY(from.only({"algorithm", "grid", "us"}));
  MeasuredTimes out;
  out.family = GYRE_TRY(from.word("algorithm"));
  if (family_named(out.family) == nullptr) return from.wrong("algorithm", "there is none of this name");
  out.grid = GYRE_TRY(grid(from, of.ranks));
  const auto same = [&](const MeasuredTimes& other) { return other.family == out.family && other.grid == out.grid; };
  if (std::ranges::any_of(of.times, same)) return from.wrong("algorithm", "stands there twice");
  out.seconds = GYRE_TRY(from.numbers("us", of.bytes.size(), per_us));
  if (std::ranges::find(out.seconds, 0) != out.seconds.end()) return from.wrong("us", "must be more than 0");
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
  if (out.per_node >= std::max(1, out.ranks)) return from.wrong("per_node", "must be less than ranks; 0: all on one node");
  out.bytes = GYRE_TRY(sizes(from));
  for (const JsonObject& one : GYRE_TRY(from.objects("times"))) out.times.push_back(GYRE_TRY(times(one, out)));
  return out;
}

}  // namespace

Result<std::vector<Measured>> parse_measured(const JsonObject& machine, const std::string& key) {
  std::vector<Measured> all;
  if (!machine.value().contains(key)) return all;
  for (const JsonObject& one : GYRE_TRY(machine.objects(key))) {
    Measured next = GYRE_TRY(measured(one));
    const auto same = [&](const Measured& m) {
      return m.collective == next.collective && m.ranks == next.ranks && m.per_node == next.per_node;
    };
    if (std::ranges::any_of(all, same)) return one.wrong("ranks", "stands there twice");
    all.push_back(std::move(next));
  }
  return all;
}

std::optional<MeasuredBeside> measured_beside(std::span<const Measured> all, std::string_view family, const Shape& shape, int per_node,
                                              double block_bytes) {
  const auto of = std::ranges::find_if(
      all, [&](const Measured& m) { return m.collective == shape.collective && m.ranks == shape.ranks && m.per_node == per_node; });
  if (of == all.end()) return {};
  const auto found = std::ranges::find_if(of->times, [&](const MeasuredTimes& t) { return t.family == family && t.grid == shape.grid; });
  if (found == of->times.end()) return {};
  const std::vector<double>&bytes = of->bytes, &seconds = found->seconds;
  const auto not_less = static_cast<size_t>(std::ranges::lower_bound(bytes, block_bytes) - bytes.begin());
  const size_t above = std::min(not_less, bytes.size() - 1);
  const size_t below = not_less == above && above > 0 ? above - 1 : above;
  const double part = below == above ? 0 : (block_bytes - bytes[below]) / (bytes[above] - bytes[below]);
  return MeasuredBeside{{bytes[below], bytes[above]}, {seconds[below], seconds[above]}, part};
}

}  // namespace gyre::topo
