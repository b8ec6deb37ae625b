// Values of flags that CLI11 does not know: sizes, and names out of a set.
#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/types.h"

namespace gyre::perf {

/// A file or folder; an empty one is refused, since it would count as none given.
inline CLI::Option* add_path(CLI::App* app, const std::string& names, std::string& value, const std::string& text) {
  return app->add_option(names, value, text)->check([](const std::string& given) { return given.empty() ? "an empty path" : ""; });
}

/// A size, such as 1.5M; CLI11's message names the flag.
inline CLI::Option* add_bytes(CLI::App* app, const std::string& names, size_t& value, const std::string& text) {
  return app
      ->add_option_function<std::string>(
          names,
          [&value, names](const std::string& given) {
            const auto bytes = parse_bytes(given);
            if (!bytes) throw CLI::ValidationError(names, fmt::format("'{}' is not a size, such as 64, 4K, 1.5M or 2G", given));
            value = *bytes;
          },
          text)
      ->type_name("SIZE");
}

/// A whole number of a range; what is not in it is refused with the nearest that is.
template <class T>
CLI::Option* add_number(CLI::App* app, const std::string& names, int64_t least, int64_t most, const std::string& text, T set) {
  return app
      ->add_option_function<std::string>(
          names,
          [=](const std::string& given) {
            const bool negative = given.starts_with('-');
            const auto digits = parse_number(std::string_view(given).substr(negative ? 1 : 0));
            if (!digits) throw CLI::ValidationError(names, fmt::format("'{}' is not a whole number", given));
            const auto size = static_cast<int64_t>(std::min<uint64_t>(*digits, INT64_MAX));
            const int64_t number = negative ? -size : size;
            if (number < least || number > most) {
              throw CLI::ValidationError(names, fmt::format("{} is not from {} to {}; the nearest right value is {}", given, least, most,
                                                            number < least ? least : most));
            }
            set(static_cast<int>(number));
          },
          text)
      ->type_name("NUMBER");
}

/// The error for a name that is none of a set.
inline CLI::ValidationError none_of(const std::string& flag, const std::string& given, const std::vector<std::string_view>& names) {
  const std::string_view near = nearest(given, names);
  return CLI::ValidationError(flag, fmt::format("'{}' is none of {}{}", given, fmt::join(names, ", "),
                                                near.empty() ? "" : fmt::format("; did you mean {}?", near)));
}

template <class Collectives>
std::vector<std::string_view> names_of(const Collectives& collectives) {
  std::vector<std::string_view> names(std::size(collectives));
  std::transform(std::begin(collectives), std::end(collectives), names.begin(), [](Collective each) { return name(each); });
  return names;
}
inline Collective read_collective(const std::string& flag, const std::string& given) {
  const auto collective = collective_named(given);
  if (!collective) throw none_of(flag, given, names_of(all_collectives()));
  return *collective;
}

/// A flag, whose help ends with what stands in `value` already, or a position.
inline CLI::Option* add_collective(CLI::App* app, const std::string& flag, Collective& value) {
  const auto read = [flag, &value](const std::string& given) { value = read_collective(flag, given); };
  const std::string unsaid = flag.starts_with('-') ? fmt::format(" ({})", name(value)) : "";
  return app->add_option_function<std::string>(flag, read, fmt::format("{}{}", fmt::join(names_of(all_collectives()), ", "), unsaid))
      ->type_name("NAME");
}

/// Names with commas between them; the help ends with what stands in `values` already.
inline void add_collectives(CLI::App* app, const std::string& flag, std::vector<Collective>& values) {
  const auto read = [flag, &values](const std::vector<std::string>& given) {
    values.clear();
    for (const std::string& one : given) {
      const Collective collective = read_collective(flag, one);
      if (std::ranges::find(values, collective) == values.end()) values.push_back(collective);
    }
  };
  const auto text = fmt::format("{} ({})", fmt::join(names_of(all_collectives()), ", "), fmt::join(names_of(values), ","));
  app->add_option_function<std::vector<std::string>>(flag, read, text)->delimiter(',')->type_name("NAMES");
}

/// One name of a set, or "all".
template <class T, class Parse, class All>
void add_names(CLI::App* app, const std::string& names, std::vector<T>& values, Parse parse, All all, const std::string& text) {
  app->add_option_function<std::string>(
         names,
         [=, &values](const std::string& given) {
           const auto everything = all();
           values.assign(everything.begin(), everything.end());
           if (given == "all") return;
           const auto one = parse(given);
           if (!one) {
             std::vector<std::string_view> known;
             known.reserve(everything.size() + 1);
             for (const T value : everything) known.push_back(name(value));
             known.emplace_back("all");
             throw none_of(names, given, known);
           }
           values = {*one};
         },
         text)
      ->type_name("NAME");
}

}  // namespace gyre::perf
