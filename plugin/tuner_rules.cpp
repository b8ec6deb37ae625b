#include "plugin/tuner_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.h"
#include "plugin/tuner_words.h"

namespace gyre::plugin {
namespace {

// By their numbers in NCCL.
constexpr std::array<std::string_view, 5> collectives{"broadcast", "reduce", "allgather", "reducescatter", "allreduce"};
constexpr std::array<std::string_view, 10> columns{"collective_type", "min_bytes", "max_bytes", "algorithm",  "protocol",
                                                   "channels",        "nNodes",    "nRanks",    "numPipeOps", "regBuff"};
constexpr size_t needed = 8;           // columns; the last two may be absent
constexpr int64_t most_channels = 64;  // MAXCHANNELS from 2.25 on; NCCL keeps the number in eight bits before it limits it
constexpr std::string_view blanks = " \t\r";

struct Field {
  std::string_view text;
  size_t column = 0;  ///< in the line, from 1
};

std::vector<Field> fields_of(std::string_view line) {
  std::vector<Field> fields;
  for (size_t at = 0;;) {
    const size_t end = std::min(line.find(',', at), line.size());
    const size_t first = std::min(line.find_first_not_of(blanks, at), end);
    const size_t last = first == end ? end : line.find_last_not_of(blanks, end - 1) + 1;
    fields.push_back({line.substr(first, last - first), first + 1});
    if (end == line.size()) return fields;
    at = end + 1;
  }
}

/// A line's fields, read one after the other.
class Line {
 public:
  Line(std::string_view file, size_t number, std::vector<Field> fields) : file_(file), number_(number), fields_(std::move(fields)) {}

  Error error(size_t column, const std::string& what) const {
    return Error{Code::invalid_argument, fmt::format("{}:{}:{}: {}", file_, number_, column, what)};
  }
  size_t size() const { return fields_.size(); }
  const Field& field(size_t i) const { return fields_[i]; }

  template <size_t count>
  Result<int> word(size_t i, const std::array<std::string_view, count>& words) const {
    const auto found = std::find(words.begin(), words.end(), fields_[i].text);
    if (found != words.end()) return static_cast<int>(found - words.begin());
    const std::string_view near = nearest(fields_[i].text.substr(0, 40), words);
    return wrong(i, fmt::format("one of {}{}", fmt::join(words, ", "), near.empty() ? "" : fmt::format("; perhaps {}", near)));
  }
  Result<uint64_t> bytes(size_t i) const {
    const auto value = parse_number(fields_[i].text);
    if (!value) return wrong(i, "a number of bytes");
    return *value;
  }
  /// From 0 to `most`, or any.
  Result<int64_t> number(size_t i, int64_t most = std::numeric_limits<int32_t>::max()) const {
    if (i >= fields_.size() || fields_[i].text == "-1") return TunerRule::any;
    const auto value = parse_number(fields_[i].text);
    if (!value || *value > static_cast<uint64_t>(most)) return wrong(i, fmt::format("-1, or a number up to {}", most));
    return static_cast<int64_t>(*value);
  }

 private:
  Error wrong(size_t i, const std::string& right) const {
    return error(fields_[i].column, fmt::format("{} is \"{}\", must be {}", columns[i], printable(fields_[i].text, 40), right));
  }

  std::string_view file_;
  size_t number_;
  std::vector<Field> fields_;
};

Result<TunerRule> rule_of(const Line& line) {
  if (line.size() < needed || line.size() > columns.size()) {
    const Field& where = line.field(std::min(line.size() - 1, columns.size()));
    return line.error(where.column,
                      fmt::format("{} fields, must be {} to {}: {}", line.size(), needed, columns.size(), fmt::join(columns, ",")));
  }
  TunerRule rule;
  rule.collective = GYRE_TRY(line.word(0, collectives));
  rule.least_bytes = GYRE_TRY(line.bytes(1));
  rule.most_bytes = GYRE_TRY(line.bytes(2));
  if (rule.most_bytes < rule.least_bytes)
    return line.error(line.field(2).column, fmt::format("max_bytes {} is less than min_bytes {}", rule.most_bytes, rule.least_bytes));
  rule.algorithm = GYRE_TRY(line.word(3, tuner_algorithms));
  rule.protocol = GYRE_TRY(line.word(4, tuner_protocols));
  rule.channels = static_cast<int>(std::max<int64_t>(0, GYRE_TRY(line.number(5, most_channels))));
  rule.nodes = GYRE_TRY(line.number(6));
  rule.ranks = GYRE_TRY(line.number(7));
  rule.operations = GYRE_TRY(line.number(8));
  rule.registered = GYRE_TRY(line.number(9, 1));
  return rule;
}

}  // namespace

Result<std::vector<TunerRule>> parse_tuner_rules(std::string_view text, std::string_view file) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // as spreadsheets mark UTF-8
  std::vector<TunerRule> rules;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    auto fields = fields_of(line);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (const size_t cr = line.find('\r'); cr != line.npos && cr + 1 < line.size())
      return Line(file, number, {}).error(cr + 1, "a carriage return in mid line; lines end with a newline");
    const std::string_view first = fields.front().text;
    if ((first.empty() && fields.size() == 1) || first.starts_with('#') || first == columns.front()) continue;
    rules.push_back(GYRE_TRY(rule_of(Line(file, number, std::move(fields)))));
  }
  return rules;
}

}  // namespace gyre::plugin
