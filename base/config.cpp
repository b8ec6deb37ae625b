#include "base/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace gyre {
namespace {

Error wrong(std::string_view name, std::string_view value, const std::string& hint) {
  return Error{Code::invalid_argument, fmt::format("{}={}: {}", name, value, hint)};
}

/// The first word that is none of the choices.
std::optional<std::string_view> first_wrong(const Option<std::string>& option, std::string_view value) {
  if (option.choices.empty() || (option.list && value.empty())) return std::nullopt;
  for (size_t at = 0; at <= value.size();) {
    const size_t end = option.list ? std::min(value.find(',', at), value.size()) : value.size();
    const std::string_view word = value.substr(at, end - at);
    if (std::find(option.choices.begin(), option.choices.end(), word) == option.choices.end()) return word;
    at = end + 1;
  }
  return std::nullopt;
}

Status assign(Option<std::string>& option, std::string_view value) {
  const auto& choices = option.choices;
  if (const auto word = first_wrong(option, value)) {
    const std::string_view near = nearest(*word, choices);
    const std::string hint = near.empty() ? "" : fmt::format("; did you mean {}?", near);
    return wrong(option.name, value,
                 fmt::format("must be {} {}{}", option.list ? "some, with commas, of" : "one of", fmt::join(choices, ", "), hint));
  }
  option.value = std::string(value);
  return {};
}

Status assign(Option<size_t>& option, std::string_view value) {
  const auto number = parse_bytes(value);
  if (!number) return wrong(option.name, value, fmt::format("must be a number, such as {} (K, M, G allowed)", option.value));
  const size_t in_range = std::clamp<size_t>(*number, option.least, option.most);
  const size_t right = option.multiple == 0 ? in_range : std::max(option.least, in_range / option.multiple * option.multiple);
  if (right != *number) {
    const std::string grid = option.multiple == 0 ? "" : fmt::format(" and a multiple of {}", option.multiple);
    return wrong(option.name, value,
                 fmt::format("must be from {} to {}{}; the nearest right value is {}", option.least, option.most, grid, right));
  }
  option.value = *number;
  return {};
}

}  // namespace

Status Config::set(std::string_view name, std::string_view value, std::string_view origin) {
  Status status;
  bool found = false;
  std::vector<std::string_view> names;
  each([&](auto& option) {
    names.push_back(option.name);
    if (option.name != name) return;
    found = true;
    status = assign(option, value);
    option.origin = origin;
  });
  if (found) return status;
  const std::string_view near = nearest(name, names);
  const std::string hint = near.empty() ? "gyre-perf --options lists all" : fmt::format("did you mean {}?", near);
  return Error{Code::invalid_argument, fmt::format("{} is not an option of gyre; {}", name, hint)};
}

Result<Config> Config::from(const std::vector<std::string>& environment) {
  Config config;
  for (const std::string& entry : environment) {
    const size_t equals = entry.find('=');
    if (!entry.starts_with("GYRE_") || equals == std::string::npos) continue;
    GYRE_TRY(config.set(std::string_view(entry).substr(0, equals), std::string_view(entry).substr(equals + 1), "environment"));
  }
  return config;
}

Result<Config> Config::from_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return from(entries);
}

std::string Config::table() const {
  std::string text = fmt::format("{:<16} {:<10} {:<12} {}\n", "option", "value", "from", "meaning");
  each([&](const auto& option) {
    text += fmt::format("{:<16} {:<10} {:<12} {}\n", option.name, fmt::format("{}", option.value), option.origin, option.sentence);
  });
  return text;
}

}  // namespace gyre
