#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "topo/gpu_row.h"
#include "topo/json_object.h"
#include "topo/json_text.h"

namespace gyre::topo {
namespace {

constexpr size_t most_names = 4096;  // of GPUs or ports of a machine
constexpr std::string_view row_source = "what a rank says of its GPU";

Result<GpuRow::Other> parse_other(const nlohmann::json& value) {
  const JsonObject object(value, row_source, "others");
  GYRE_TRY(object.only({"direct", "distance", "gpu"}));
  GpuRow::Other other;
  other.gpu = GYRE_TRY(object.word("gpu"));
  const int distance = GYRE_TRY(object.whole("distance"));
  if (distance > static_cast<int>(Distance::system)) return object.wrong("distance", "is none");
  other.distance = static_cast<Distance>(distance);
  other.direct = GYRE_TRY(object.whole("direct"));
  return other;
}

Result<std::vector<nlohmann::json>> entries(const JsonObject& object, const std::string& key) {
  const nlohmann::json& value = object.value();
  if (!value.contains(key) || !value[key].is_array() || value[key].size() > most_names)
    return object.wrong(key, fmt::format("must be a list of at most {}", most_names));
  return std::vector<nlohmann::json>(value[key].begin(), value[key].end());
}

}  // namespace

std::string text(const GpuRow& row) {
  nlohmann::json out{{"gpu", row.gpu}, {"switched", row.switched}, {"rails", row.rails}, {"others", nlohmann::json::array()}};
  for (const GpuRow::Other& other : row.others)
    out["others"].push_back({{"gpu", other.gpu}, {"distance", static_cast<int>(other.distance)}, {"direct", other.direct}});
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<GpuRow> parse_gpu_row(std::string_view given) {
  const nlohmann::json value = GYRE_TRY(parse_json(given, row_source));
  const JsonObject object(value, row_source, "");
  GYRE_TRY(object.only({"gpu", "others", "rails", "switched"}));
  GpuRow row;
  row.gpu = GYRE_TRY(object.word("gpu"));
  row.switched = GYRE_TRY(object.whole("switched"));
  for (const nlohmann::json& other : GYRE_TRY(entries(object, "others"))) row.others.push_back(GYRE_TRY(parse_other(other)));
  for (const nlohmann::json& rail : GYRE_TRY(entries(object, "rails"))) {
    if (!rail.is_string()) return object.wrong("rails", "must be names");
    row.rails.push_back(rail.get<std::string>());
  }
  return row;
}

}  // namespace gyre::topo
