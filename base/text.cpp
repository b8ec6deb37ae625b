#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <system_error>

namespace gyre {
namespace {

// Levenshtein's distance, one row at a time.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
  if (!text.empty() && (text.back() == 'B' || text.back() == 'b')) text.remove_suffix(1);
  unsigned shift = 0;
  if (!text.empty()) {
    switch (text.back() | 0x20) {
      case 'k':
        shift = 10;
        break;
      case 'm':
        shift = 20;
        break;
      case 'g':
        shift = 30;
        break;
      default:
        break;
    }
  }
  if (shift != 0) text.remove_suffix(1);
  const size_t point = std::min(text.find('.'), text.size());
  const auto number = parse_number(text.substr(0, point));
  if (!number || (*number << shift) >> shift != *number) return std::nullopt;
  const uint64_t whole = *number << shift;
  if (point == text.size()) return whole;
  const std::string_view decimals = text.substr(point + 1);
  const auto numerator = parse_number(decimals);
  constexpr size_t most_decimals = 9;  // with which a G's fit
  if (shift == 0 || !numerator || decimals.size() > most_decimals) return std::nullopt;
  uint64_t denominator = 1;
  for (size_t i = 0; i < decimals.size(); ++i) denominator *= 10;
  return whole + (*numerator << shift) / denominator;
}

Result<std::vector<int>> parse_grid(std::string_view text) {
  std::vector<int> extents;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('x', at), text.size());
    const uint64_t extent = parse_number(text.substr(at, end - at)).value_or(0);
    if (extent == 0 || extent > INT32_MAX) {
      return Error{Code::invalid_argument, "must be extents such as 4x2, whose product is the number of ranks"};
    }
    extents.push_back(static_cast<int>(extent));
    at = end + 1;
  }
  return extents;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(word.size() / 2, 2) + 1;
  for (const std::string_view candidate : candidates) {
    const size_t d = distance(word, candidate);
    if (d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  }
  return best;
}

std::string printable(std::string_view text, size_t most) {
  std::string shown(text.substr(0, most));
  for (char& c : shown) c = c >= ' ' && c <= '~' ? c : '?';
  return text.size() > most ? shown + "…" : shown;
}

std::string errno_text(int error) { return std::system_category().message(error); }

}  // namespace gyre
