// What is read of a JSON file of constants: every error names the file, the key and the value.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "topo/json_text.h"

namespace gyre::topo {

constexpr double per_us = 1e6;  ///< the unit of a number that is given in microseconds

/// One object of a file, and where it stands.
class JsonObject {
 public:
  JsonObject(const nlohmann::json& value, std::string_view source, std::string path)
      : value_(value), source_(source), path_(std::move(path)) {}

  Error wrong(const std::string& key, std::string_view what) const {
    const bool given = !key.empty() && value_.is_object() && value_.contains(key);
    return error(path_of(key), given ? &value_[key] : nullptr, what);
  }
  /// Of an item of a list.
  Error wrong(const std::string& key, size_t item, std::string_view what) const {
    return error(fmt::format("{}[{}]", path_of(key), item), &value_[key][item], what);
  }
  Status only(const std::set<std::string>& known) const {
    if (!value_.is_object()) return wrong("", "must be an object");
    for (const auto& [key, ignored] : value_.items()) {
      if (!known.contains(key)) return wrong(key, fmt::format("unknown; known are {}", fmt::join(known, ", ")));
    }
    return {};
  }
  Result<JsonObject> object(const std::string& key) const {
    if (!value_.contains(key)) return wrong(key, "is missing");
    if (!value_[key].is_object()) return wrong(key, "must be an object");
    return JsonObject(value_[key], source_, path_of(key));
  }
  /// All of a list.
  Result<std::vector<JsonObject>> objects(const std::string& key) const {
    if (!value_.contains(key)) return wrong(key, "is missing");
    if (!value_[key].is_array()) return wrong(key, "must be a list of objects");
    std::vector<JsonObject> out;
    for (const nlohmann::json& item : value_[key]) {
      if (!item.is_object()) return wrong(key, out.size(), "must be an object");
      out.emplace_back(item, source_, fmt::format("{}[{}]", path_of(key), out.size()));
    }
    return out;
  }
  // What grows or lasts: no number of the file may be negative, or so large that sums lose sense.
  Result<double> number(const std::string& key, double unit) const {
    if (!value_.contains(key)) return wrong(key, "is missing");
    if (!value_[key].is_number()) return wrong(key, "must be a number");
    const double given = value_[key].get<double>();
    if (!(given >= 0 && given <= 1e9)) return wrong(key, "must be from 0 to 1e9");
    return given / unit;
  }
  Result<int> whole(const std::string& key) const { return static_cast<int>(GYRE_TRY(whole_up_to(key, 1 << 20))); }
  Result<size_t> bytes(const std::string& key) const { return static_cast<size_t>(GYRE_TRY(whole_up_to(key, int64_t{1} << 40))); }
  Result<bool> truth(const std::string& key) const {
    if (!value_.contains(key)) return wrong(key, "is missing");
    if (!value_[key].is_boolean()) return wrong(key, "must be true or false");
    return value_[key].get<bool>();
  }
  Result<std::string> word(const std::string& key) const {
    if (!value_.contains(key)) return wrong(key, "is missing");
    if (!value_[key].is_string()) return wrong(key, "must be a text");
    return value_[key].get<std::string>();
  }
  /// So many, each as number().
  Result<std::vector<double>> numbers(const std::string& key, size_t count, double unit) const {
    if (!value_.contains(key)) return wrong(key, "is missing");
    const nlohmann::json& given = value_[key];
    const auto right = [](const nlohmann::json& n) { return n.is_number() && n.get<double>() >= 0 && n.get<double>() <= 1e9; };
    if (!given.is_array() || given.size() != count || !std::all_of(given.begin(), given.end(), right))
      return wrong(key, fmt::format("must be {} numbers from 0 to 1e9", count));
    std::vector<double> out;
    for (const nlohmann::json& n : given) out.push_back(n.get<double>() / unit);
    return out;
  }
  const nlohmann::json& value() const { return value_; }

 private:
  Result<int64_t> whole_up_to(const std::string& key, int64_t most) const {
    if (!value_.contains(key)) return wrong(key, "is missing");
    if (!value_[key].is_number_integer()) return wrong(key, "must be a whole number");
    const auto given = value_[key].get<int64_t>();
    if (given < 0 || given > most) return wrong(key, fmt::format("must be from 0 to {}", most));
    return given;
  }
  std::string path_of(const std::string& key) const {
    const bool plain = key.size() <= 40 && std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c <= '~'; });
    return fmt::format("{}{}{}", path_, path_.empty() || key.empty() ? "" : ".", plain ? key : shown(key));
  }
  Error error(const std::string& path, const nlohmann::json* given, std::string_view what) const {
    return Error{Code::invalid_argument,
                 fmt::format("{}: {}{}{}{}", source_, path, given == nullptr ? "" : " = " + shown(*given), path.empty() ? "" : ": ", what)};
  }

  const nlohmann::json& value_;
  std::string_view source_;
  std::string path_;
};

}  // namespace gyre::topo
