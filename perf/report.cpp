#include "perf/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "perf/nccl_tests_environment.h"

namespace gyre::perf {
namespace {

constexpr std::string_view way_format = "{:>9} {:>7} {:>7} {:>6}";
constexpr std::string_view percentile_format = " {:>9} {:>9} {:>9} {:>9}";
constexpr std::string_view prediction_format = "{:>9} {:>6}  ";
constexpr size_t way_width = 32;
constexpr size_t percentiles_width = 40;

std::string time_text(double us) { return us < 1e5 ? fmt::format("{:.2f}", us) : fmt::format("{:.0f}", us); }

std::string percentiles(const std::optional<Percentiles>& of) {
  if (!of) return fmt::format(percentile_format, "N/A", "N/A", "N/A", "N/A");
  return fmt::format(percentile_format, time_text(of->p50_us), time_text(of->p90_us), time_text(of->p99_us), time_text(of->max_us));
}

std::string way(const std::optional<Measured>& measured, const Columns& columns) {
  const std::string after = columns.percentiles ? percentiles(measured ? measured->percentiles : std::nullopt) : "";
  if (!measured) return fmt::format(way_format, "N/A", "N/A", "N/A", "N/A") + after;
  const Measured& m = *measured;
  return fmt::format(way_format, time_text(m.time_us), fmt::format("{:.2f}", m.algbw), fmt::format("{:.2f}", m.busbw),
                     m.checked ? fmt::format("{}", m.wrong) : "N/A") +
         after;
}

std::string prediction(const Row& row) {
  const auto error = row.prediction_error();
  return fmt::format(prediction_format, row.predicted_us ? fmt::format("{:.2f}", *row.predicted_us) : "N/A",
                     error ? fmt::format("{:+.0f}%", 100 * *error) : "N/A");
}

// Four lines of words above the columns of one way.
struct WayHead {
  std::array<std::string_view, 4> way;
  std::array<std::string_view, 4> percentiles;

  std::string text(const Columns& columns) const {
    std::string first = fmt::format(way_format, way[0], way[1], way[2], way[3]);
    if (!columns.percentiles) return first;
    return first + fmt::format(percentile_format, percentiles[0], percentiles[1], percentiles[2], percentiles[3]);
  }
};

}  // namespace

std::string table_head(const Columns& columns) {
  const auto line = [&](std::array<std::string_view, 5> call, const std::string& ways, std::array<std::string_view, 2> predicted,
                        std::string_view timestamp, std::string_view last) {
    const std::string prediction = columns.predicted ? fmt::format(prediction_format, predicted[0], predicted[1]) : "";
    const std::string time = columns.timestamp ? fmt::format("{:<19}  ", timestamp) : "";
    return fmt::format("# {:>12} {:>12} {:>9} {:>6} {:>5}  {}  {}{}{}\n", call[0], call[1], call[2], call[3], call[4], ways, prediction,
                       time, last);
  };
  const auto twice = [&](const WayHead& head) { return head.text(columns) + " " + head.text(columns); };
  const size_t width = way_width + (columns.percentiles ? percentiles_width : 0);
  return line({}, fmt::format("{:^{}} {:^{}}", "out-of-place", width, "in-place", width), {}, "", "") +
         line({"size", "count", "type", "redop", "root"},
              twice({{"time", "algbw", "busbw", "#wrong"}, {"i_p50", "i_p90", "i_p99", "i_max"}}), {"predicted", "error"}, "timestamp",
              "algorithm") +
         line({"(B)", "(elements)"}, twice({{"(us)", "(GB/s)", "(GB/s)", ""}, {"(us)", "(us)", "(us)", "(us)"}}), {"(us)"}, "", "");
}

std::string table_row(const Row& row, const Columns& columns) {
  const Case& c = row.call;
  const std::string time = columns.timestamp ? fmt::format("{:%Y-%m-%d %H:%M:%S}  ", fmt::localtime(std::time(nullptr))) : "";
  return fmt::format("  {:>12} {:>12} {:>9} {:>6} {:>5}  {} {}  {}{}{}\n", c.bytes(), c.count, name(c.type),
                     c.benchmark->reduces() ? name(c.op) : "none", c.benchmark->rooted() ? c.root : -1, way(row.out_of_place, columns),
                     way(row.in_place, columns), columns.predicted ? prediction(row) : "", time, row.algorithm);
}

void Totals::add(const Row& row) {
  ++rows;
  wrong += row.wrong();
  checked = checked || row.out_of_place.checked;
  sum_busbw += row.out_of_place.busbw + (row.in_place ? row.in_place->busbw : 0);
  ways += row.in_place ? 2 : 1;
}

void Report::head(const std::vector<std::string>& about, const Columns& columns) {
  columns_ = columns;
  for (const std::string& line : about) fmt::print("# {}\n", line);
  fmt::print("#\n{}", table_head(columns));
  std::fflush(stdout);
}

void Report::progress(size_t bytes, uint64_t done, uint64_t of) {
  const auto now = std::chrono::steady_clock::now();
  if (isatty(STDERR_FILENO) == 0 || now - last_ < std::chrono::seconds(1)) return;
  fmt::print(stderr, "\r\033[K# {} of {}: {} bytes …", done, of != 0 ? std::to_string(of) : "endless", bytes);
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
  totals_.add(row);
  const Case& c = row.call;
  if (c.count == 0 && row.asked_bytes > 0) {
    const std::string each = c.blocks() > 1 ? fmt::format(" for each of {} ranks", c.ranks) : "";
    fmt::print("# {} bytes hold no {}{}: called with 0 elements\n", row.asked_bytes, name(c.type), each);
  }
  fmt::print("{}", table_row(row, columns_));
  if (row.cut) {
    const std::string together = row.in_place ? fmt::format(", {} in place", row.in_place->iterations) : "";
    fmt::print("# the row above has {} iterations out of place{}: more did not fit the time limit\n", row.out_of_place.iterations,
               together);
  }
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

void Report::tail(std::string_view benchmark, std::optional<double> wanted_busbw) {
  clear_progress();
  const double busbw = totals_.average_busbw();
  std::string verdict;
  if (wanted_busbw) verdict = is_enough(busbw, *wanted_busbw) ? " OK" : " FAILED";
  if (totals_.checked) fmt::print("# Out of bounds values : {} {}\n", totals_.wrong, totals_.wrong == 0 ? "OK" : "FAILED");
  fmt::print("# Avg bus bandwidth    : {:.4f}{}\n#\n# Collective test concluded: {}\n", busbw, verdict, benchmark);
  std::fflush(stdout);
}

}  // namespace gyre::perf
