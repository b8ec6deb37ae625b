// A reader of Prometheus' text format 0.0.4, stricter than Prometheus: of what gyre writes, nothing may be doubtful.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "test/catch.h"
#include "test/text.h"

namespace gyre::test {

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  std::string value;
};

/// A label value from behind its opening quote on; leaves `line` behind the closing one.
inline std::optional<std::string> take_value(std::string_view& line) {
  std::string value;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      line.remove_prefix(i + 1);
      return value;
    }
    if (line[i] == '\\') {
      ++i;
      if (i == line.size() || !contains("\\\"n", line.substr(i, 1))) return {};
      value += line[i] == 'n' ? '\n' : line[i];
    } else {
      value += line[i];
    }
  }
  return {};
}

/// As the text format 0.0.4 defines a sample; nothing: it is none.
inline std::optional<Sample> parse_sample(std::string_view line) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz_";
  Sample sample;
  const size_t brace = line.find('{');
  if (brace == std::string_view::npos) return {};
  sample.name = line.substr(0, brace);
  if (sample.name.find_first_not_of(letters) != std::string::npos) return {};
  line.remove_prefix(brace + 1);
  while (true) {
    const size_t equals = line.find("=\"");
    if (equals == std::string_view::npos) return {};
    const std::string name(line.substr(0, equals));
    line.remove_prefix(equals + 2);
    const auto value = take_value(line);
    if (!value || name.find_first_not_of(letters) != std::string::npos || !sample.labels.emplace(name, *value).second) return {};
    if (line.starts_with("} ")) break;
    if (!line.starts_with(',')) return {};
    line.remove_prefix(1);
  }
  sample.value = line.substr(2);
  if (sample.value.empty() || sample.value.find_first_not_of("0123456789.") != std::string::npos) return {};
  return sample;
}

struct Parsed {
  std::vector<Sample> samples;
  std::map<std::string, std::string> types;
};

/// Every line right, each metric introduced once, its samples behind its introduction, no two alike.
inline Parsed parse_prometheus(const std::string& text) {
  Parsed parsed;
  std::set<std::string> seen;
  std::string helped, current;
  REQUIRE(text.ends_with('\n'));
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    INFO(line);
    if (line.starts_with("# HELP ")) {
      helped = line.substr(7, line.find(' ', 7) - 7);
    } else if (line.starts_with("# TYPE ")) {
      const size_t space = line.find(' ', 7);
      current = line.substr(7, space - 7);
      CHECK(current == helped);
      CHECK(parsed.types.emplace(current, line.substr(space + 1)).second);
    } else {
      const auto sample = parse_sample(line);
      REQUIRE(sample);
      CHECK(sample->name == current);
      CHECK(seen.insert(line.substr(0, line.rfind(' '))).second);
      parsed.samples.push_back(*sample);
    }
  }
  return parsed;
}

inline std::string value_of_sample(const Parsed& parsed, const std::string& name, const std::map<std::string, std::string>& labels) {
  for (const Sample& sample : parsed.samples) {
    const auto agrees = [&](const auto& label) {
      return sample.labels.contains(label.first) && sample.labels.at(label.first) == label.second;
    };
    if (sample.name == name && std::all_of(labels.begin(), labels.end(), agrees)) return sample.value;
  }
  return "none";
}

}  // namespace gyre::test
