// A JSON file's text, read more strictly than JSON asks: no key twice in an object, of which one would be passed over in silence, and
// nothing so deep that functions which call themselves for each level have no end.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gyre::topo {

/// What a line of an error may carry of a file: a value, or a key.
inline std::string shown(const nlohmann::json& value) {
  constexpr size_t most = 80;
  const std::string text = value.dump(-1, ' ', true);
  return text.size() > most ? text.substr(0, most) + "…" : text;
}

/// Looks at a text before it is made a value; `error` says what was found. (The library would tell it as it makes the value, too, in a time
/// that grows with the square of the text.)
class JsonCheck final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonCheck(std::string_view text) : text_(text) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    return keys_.back().insert(key).second || fails(fmt::format("{} stands twice in an object", shown(key)));
  }
  bool parse_error(std::size_t bytes, const std::string&, const nlohmann::json::exception&) override {
    const std::string_view read = text_.substr(0, bytes == 0 ? 0 : bytes - 1);  // up to the one that is wrong, or the end
    const auto line = 1 + std::count(read.begin(), read.end(), '\n');
    return fails(fmt::format("is not JSON: line {}, column {}", line, read.size() - (read.rfind('\n') + 1) + 1));  // npos and 1 are 0
  }

  std::string error;

 private:
  bool open() {
    constexpr size_t most_levels = 64;
    keys_.emplace_back();
    return keys_.size() <= most_levels || fails(fmt::format("is nested more than {} deep", most_levels));
  }
  bool close() {
    keys_.pop_back();
    return true;
  }
  bool fails(std::string what) {
    error = std::move(what);
    return false;
  }

  std::string_view text_;
  std::vector<std::set<std::string>> keys_;  ///< of the objects that are open; a list has none
};

/// `source` is the name of the text in errors.
inline Result<nlohmann::json> parse_json(std::string_view text, std::string_view source) {
  JsonCheck check(text);
  if (!nlohmann::json::sax_parse(text, &check)) return Error{Code::invalid_argument, fmt::format("{}: {}", source, check.error)};
  return nlohmann::json::parse(text, nullptr, false);
}

}  // namespace gyre::topo
