#include "perf/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

namespace gyre::perf {
namespace {

constexpr std::string_view way_format = "{:>9} {:>7} {:>7} {:>6}";
constexpr std::string_view prediction_format = "{:>9} {:>6}  ";

std::string columns(const std::optional<Measured>& measured) {
  if (!measured) return fmt::format(way_format, "N/A", "N/A", "N/A", "N/A");
  const Measured& m = *measured;
  return fmt::format(way_format, m.time_us < 1e5 ? fmt::format("{:.2f}", m.time_us) : fmt::format("{:.0f}", m.time_us),
                     fmt::format("{:.2f}", m.algbw), fmt::format("{:.2f}", m.busbw), m.checked ? fmt::format("{}", m.wrong) : "N/A");
}

std::string prediction(const Row& row) {
  const auto error = row.prediction_error();
  return fmt::format(prediction_format, row.predicted_us ? fmt::format("{:.2f}", *row.predicted_us) : "N/A",
                     error ? fmt::format("{:+.0f}%", 100 * *error) : "N/A");
}

}  // namespace

std::string table_head(bool predicts) {
  const auto line = [&](std::array<std::string_view, 5> call, const std::string& ways, std::array<std::string_view, 2> predicted,
                        std::string_view last) {
    const std::string prediction = predicts ? fmt::format(prediction_format, predicted[0], predicted[1]) : "";
    return fmt::format("# {:>12} {:>12} {:>9} {:>6} {:>5}  {}  {}{}\n", call[0], call[1], call[2], call[3], call[4], ways, prediction,
                       last);
  };
  const auto twice = [](std::string_view time, std::string_view algbw, std::string_view busbw, std::string_view wrong) {
    const std::string way = fmt::format(way_format, time, algbw, busbw, wrong);
    return way + " " + way;
  };
  return line({}, fmt::format("{:^32} {:^32}", "out-of-place", "in-place"), {}, "") +
         line({"size", "count", "type", "redop", "root"}, twice("time", "algbw", "busbw", "#wrong"), {"predicted", "error"}, "algorithm") +
         line({"(B)", "(elements)"}, twice("(us)", "(GB/s)", "(GB/s)", ""), {"(us)"}, "");
}

std::string table_row(const Row& row, bool predicts) {
  const Case& c = row.call;
  return fmt::format("  {:>12} {:>12} {:>9} {:>6} {:>5}  {} {}  {}{}\n", c.bytes(), c.count, name(c.type),
                     c.benchmark->reduces() ? name(c.op) : "none", c.benchmark->rooted() ? c.root : -1, columns(row.out_of_place),
                     columns(row.in_place), predicts ? prediction(row) : "", row.algorithm);
}

void Report::head(const std::vector<std::string>& about, bool predicts) {
  predicts_ = predicts;
  for (const std::string& line : about) fmt::print("# {}\n", line);
  fmt::print("#\n{}", table_head(predicts));
  std::fflush(stdout);
}

void Report::progress(size_t bytes, size_t done, size_t of) {
  const auto now = std::chrono::steady_clock::now();
  if (isatty(STDERR_FILENO) == 0 || now - last_ < std::chrono::seconds(1)) return;
  fmt::print(stderr, "\r\033[K# {} of {}: {} bytes …", done, of, bytes);
  std::fflush(stderr);
  progress_shown_ = true;
}

void Report::clear_progress() {
  if (progress_shown_) fmt::print(stderr, "\r\033[K");
  progress_shown_ = false;
  last_ = std::chrono::steady_clock::now();
}

void Report::row(const Row& row) {
  clear_progress();
  rows_.push_back(row);
  const Case& c = row.call;
  if (c.count == 0 && row.asked_bytes > 0) {
    const std::string each = c.blocks() > 1 ? fmt::format(" for each of {} ranks", c.ranks) : "";
    fmt::print("# {} bytes hold no {}{}: called with 0 elements\n", row.asked_bytes, name(c.type), each);
  }
  fmt::print("{}", table_row(row, predicts_));
  std::fflush(stdout);
}

void Report::note(const std::string& lines) {
  clear_progress();
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    fmt::print("# {}\n", lines.substr(at, end - at));
    at = end + 1;
  }
}

uint64_t Report::tail() {
  clear_progress();
  uint64_t wrong = 0;
  double busbw = 0;
  size_t ways = 0;
  bool checked = false;
  for (const Row& row : rows_) {
    wrong += row.wrong();
    busbw += row.out_of_place.busbw + (row.in_place ? row.in_place->busbw : 0);
    ways += row.in_place ? 2 : 1;
    checked = checked || row.out_of_place.checked;
  }
  if (checked) fmt::print("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  fmt::print("# Avg bus bandwidth    : {:.4f}\n", ways == 0 ? 0 : busbw / static_cast<double>(ways));
  std::fflush(stdout);
  return wrong;
}

}  // namespace gyre::perf
