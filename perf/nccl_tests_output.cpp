#include "perf/nccl_tests_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "base/text.h"
#include "base/types.h"

namespace gyre::perf {
namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  Words words;
  for (size_t begin = 0; (begin = line.find_first_not_of(" \t\r", begin)) != line.npos;) {
    const size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

/// Of one way of each row, out of place or in place. Before 2.13 wrong results were not counted: "error" was the largest difference, and
/// the program failed where that was too large.
struct TimeColumns {
  size_t time = 0;
  std::optional<size_t> wrong;
};

/// None: the line does not name columns.
std::vector<TimeColumns> columns_named(const Words& names) {
  std::vector<TimeColumns> all;
  if (names.empty() || names.front() != "size") return all;
  constexpr size_t to_wrong = 3;  // time, algbw, busbw, #wrong
  for (size_t i = 0; i + to_wrong < names.size(); ++i) {
    if (names[i] != "time") continue;
    const bool counted = names[i + to_wrong] == "#wrong";
    all.push_back({i, counted ? std::optional(i + to_wrong) : std::nullopt});
  }
  return all;
}

std::optional<double> decimal(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

constexpr uint64_t most_row_bytes = uint64_t{1} << 62;  // of a call: what is computed of two sizes still fits
bool has_digits_only(std::string_view word) { return word.find_first_not_of("0123456789") == word.npos; }

/// Whether a line is one of the table's, and not a launcher's or NCCL's that begins with a number, too: "16 tasks were started".
bool is_table_row(const Words& words) {
  constexpr std::array<std::string_view, 5> others{"char", "int", "fp8_e4m3", "fp8_e5m2", "none"};  // of nccl-tests for AMD, and before 2
  if (words.size() < 4 || !has_digits_only(words[0]) || !has_digits_only(words[1])) return false;
  return data_type_named(words[2]).has_value() || std::ranges::find(others, words[2]) != others.end();
}

Error unread(uint64_t bytes, const char* column, std::string_view value) {
  return {Code::invalid_argument, fmt::format("its row of {} bytes has '{}' as {}", bytes, printable(value, 40), column)};
}

/// Microseconds; none: it is no number, or of more than eleven days. Means of what is less are finite.
std::optional<double> us_in(std::string_view word) {
  constexpr double most_us = 1e12;
  const auto us = decimal(word);
  return us && *us > 0 && *us < most_us ? us : std::nullopt;
}

/// The mean time of a row's ways; nothing: it has none.
Result<std::optional<double>> row_us(const Words& row, uint64_t bytes, const std::vector<TimeColumns>& columns) {
  double sum = 0;
  int ways = 0;
  for (const auto& [time, wrong] : columns) {
    if (time >= row.size() || row[time] == "N/A") continue;
    const auto us = us_in(row[time]);
    if (!us) return unread(bytes, "time", row[time]);
    sum += *us;
    ++ways;
    if (!wrong) continue;
    if (*wrong >= row.size()) return unread(bytes, "#wrong", "");
    if (row[*wrong] != "N/A" && decimal(row[*wrong]) != 0.0)
      return Error{Code::internal, fmt::format("wrong results: #wrong of {} bytes is {}", bytes, printable(row[*wrong], 40))};
  }
  return ways == 0 ? std::optional<double>() : sum / ways;
}

/// The next line; the text is what follows it.
std::string_view taken_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  while (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

Result<std::map<uint64_t, double>> nccl_tests_times(std::string_view output) {
  std::map<uint64_t, double> means;
  std::map<uint64_t, int> rows;
  std::vector<TimeColumns> columns;
  while (!output.empty()) {
    const std::string_view line = taken_line(output);
    const bool comment = line.starts_with('#');
    const Words words = words_of(line.substr(comment ? 1 : 0));
    if (comment) {
      if (auto named = columns_named(words); !named.empty()) columns = std::move(named);
      if (line.find(" Out of bounds values : ") != line.npos && words.size() > 5 && words[5] != "0" && words[5] != "N/A")
        return Error{Code::internal, fmt::format("wrong results: {} values out of bounds", printable(words[5], 40))};
      continue;
    }
    if (columns.empty() || !is_table_row(words)) continue;
    const auto bytes = parse_number(words.front());
    if (!bytes || *bytes > most_row_bytes)
      return Error{Code::invalid_argument, fmt::format("its row of {} bytes is of more than can be", printable(words.front(), 40))};
    if (*bytes == 0) continue;  // there are fewer elements than ranks
    const auto us = GYRE_TRY(row_us(words, *bytes, columns));
    if (!us) continue;
    double& mean = means[*bytes];
    mean += (*us - mean) / ++rows[*bytes];
  }
  if (means.empty())
    return Error{Code::invalid_argument, "it printed no table of nccl-tests': a line '# size count type ...' and rows under it"};
  return means;
}

// "#  Rank  3 Group  0 Pid  1234 on host1 device  3 [0000:0f:00] NVIDIA H100 80GB HBM3"
NcclTestsRanks nccl_tests_ranks(std::string_view output) {
  NcclTestsRanks ranks;
  while (!output.empty()) {
    const std::string_view line = taken_line(output);
    const Words words = words_of(line);
    if (words.size() < 4 || words[0] != "#" || words[1] != "Rank") continue;
    constexpr uint64_t most = 1 << 20;
    const auto rank = parse_number(words[2]);
    if (rank && *rank < most) ranks.count = std::max(ranks.count, static_cast<int>(*rank) + 1);
    const auto on = std::ranges::find(words, "on");
    if (words.end() - on > 1) ++ranks.on_host[printable(on[1], 80)];
    const size_t place = line.find("] ");
    if (ranks.device.empty() && place != line.npos) ranks.device = printable(line.substr(place + 2), 80);
  }
  return ranks;
}

}  // namespace gyre::perf
