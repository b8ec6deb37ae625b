#include <fmt/format.h>

#include <algorithm>

#include "perf/commands.h"
#include "perf/compare.h"

namespace gyre::perf {
namespace {

constexpr int exit_below = 4;  // the exit code of --fail-below

void print_head(const Results& before, const Results& after, const Comparison& comparison) {
  fmt::print("# A: {}: {}\n# B: {}: {}\n", before.path, before.origin(), after.path, after.origin());
  if (!before.samples) fmt::print("# {} between {} ranks\n", before.benchmark().title, before.ranks());
  for (const std::string& difference : comparison.differences) fmt::print("# A and B differ in {}\n", difference);
  if (comparison.only_before + comparison.only_after > 0) {
    fmt::print("# only in A: {} points, only in B: {}\n", comparison.only_before, comparison.only_after);
  }
  fmt::print("# ratio: A's time over B's, of medians; above 1 B is faster. spread: of single measurements; + and -: beyond it\n#\n");
  fmt::print("# {:>12} {:>9} {:>6} {:>5} {:>12} {:>11} {:>11} {:>7}   {:<13}  {}\n", "size (B)", "type", "redop", "root", "place", "A (us)",
             "B (us)", "ratio", "spread", "algorithm");
}

void print_pair(const Results& before, const Results& after, const Paired& pair) {
  const Point& a = before.points[pair.before];
  const Point& b = after.points[pair.after];
  const std::string spread = pair.repeated ? fmt::format("{:.2f}..{:.2f}", pair.least, pair.most) : "N/A";
  const int beyond = pair.beyond_spread();
  const std::string of = before.samples ? fmt::format("{}: ", name(*a.benchmark->collective)) : "";
  const std::string algorithm =
      a.algorithm_text() == b.algorithm_text() ? of + a.algorithm_text() : fmt::format("{} -> {}", a.algorithm_text(), b.algorithm_text());
  fmt::print("  {:>12} {:>9} {:>6} {:>5} {:>12} {:>11.2f} {:>11.2f} {:>7.3f} {} {:<13}  {}\n", a.bytes, a.type,
             a.redop.empty() ? "none" : a.redop, a.root, a.in_place ? "in_place" : "out_of_place", pair.before_us, pair.after_us,
             pair.ratio,
             beyond > 0   ? '+'
             : beyond < 0 ? '-'
                          : ' ',
             spread, algorithm);
}

// The geometric mean of the ratios in one way, or in both; none: there is no such point.
std::optional<double> print_summary(std::string_view title, const Results& before, const Comparison& comparison,
                                    std::optional<bool> in_place) {
  std::vector<double> ratios;
  size_t faster = 0;
  size_t slower = 0;
  for (const Paired& pair : comparison.pairs) {
    if (in_place && before.points[pair.before].in_place != *in_place) continue;
    ratios.push_back(pair.ratio);
    faster += pair.beyond_spread() > 0 ? 1 : 0;
    slower += pair.beyond_spread() < 0 ? 1 : 0;
  }
  if (ratios.empty()) return std::nullopt;
  const double mean = geometric_mean(ratios);
  fmt::print("# {:<13}: geometric mean {:.3f} of {} ratios, {:.3f} to {:.3f}; beyond their spread {} faster, {} slower\n", title, mean,
             ratios.size(), *std::min_element(ratios.begin(), ratios.end()), *std::max_element(ratios.begin(), ratios.end()), faster,
             slower);
  return mean;
}

Result<int> run(const CompareCommand& command) {
  const Results before = GYRE_TRY(read_results(command.before));
  const Results after = GYRE_TRY(read_results(command.after));
  const Comparison comparison = GYRE_TRY(compare(before, after));
  print_head(before, after, comparison);
  for (const Paired& pair : comparison.pairs) print_pair(before, after, pair);
  print_summary("out of place", before, comparison, false);
  print_summary("in place", before, comparison, true);
  const double mean = print_summary("all", before, comparison, std::nullopt).value_or(1);
  if (!command.fail_below || mean >= *command.fail_below) return 0;
  fmt::print("# FAILED: {:.3f} is below --fail-below {}\n", mean, *command.fail_below);
  return exit_below;
}

}  // namespace

int compare(const CompareCommand& command, const Config&) {
  const auto code = run(command);
  return code ? *code : complain(code.error());
}

}  // namespace gyre::perf
