#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <tuple>

#include "perf/about_run.h"
#include "perf/commands.h"
#include "perf/regret.h"

namespace gyre::perf {
namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}
double worst(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

void print_rows(const std::vector<Regret>& all) {
  fmt::print("{:<14} {:>5} {:>5} {:>9} {:>10} {:<17} {:>11} {:>7}  {:<17} {:>6}  {:<17} {:>6}\n", "collective", "ranks", "nodes",
             "transport", "bytes", "best", "us", "spread", "chosen", "ratio", "rule of thumb", "ratio");
  for (const Regret& r : all) {
    fmt::print("{:<14} {:>5} {:>5} {:>9} {:>10} {:<17} {:>11.2f} {:>7.2f}  {:<17} {:>6.2f}  {:<17} {:>6.2f}\n", name(r.collective), r.ranks,
               r.nodes, r.transport, r.bytes, r.best, r.best_us, r.best_spread, r.chosen, r.chosen_ratio, r.by_rule, r.by_rule_ratio);
  }
}

// Median and worst of each machine; a choice within the spread of the best's rounds can't be told from the best.
void print_summary(const std::vector<Regret>& all) {
  std::map<std::tuple<Collective, int, int, std::string>, std::vector<const Regret*>> machines;
  for (const Regret& r : all) machines[{r.collective, r.ranks, r.nodes, r.transport}].push_back(&r);
  fmt::print("\n{:<14} {:>5} {:>5} {:>9} {:>6}  {:>14} {:>13} {:>24}  {:>20} {:>13}\n", "collective", "ranks", "nodes", "transport",
             "sizes", "regret: median", "worst", "worst beyond the spread", "rule of thumb: median", "worst");
  for (const auto& [key, rows] : machines) {
    const auto& [collective, ranks, nodes, transport] = key;
    std::vector<double> chosen;
    std::vector<double> beyond;
    std::vector<double> by_rule;
    for (const Regret* r : rows) {
      chosen.push_back(r->chosen_ratio);
      beyond.push_back(std::max(1.0, r->chosen_ratio / r->best_spread));
      by_rule.push_back(r->by_rule_ratio);
    }
    fmt::print("{:<14} {:>5} {:>5} {:>9} {:>6}  {:>14.2f} {:>13.2f} {:>24.2f}  {:>20.2f} {:>13.2f}\n", name(collective), ranks, nodes,
               transport, rows.size(), median(chosen), worst(chosen), worst(beyond), median(by_rule), worst(by_rule));
  }
}

Status write(const RegretCommand& command, const Config& config, const std::vector<Regret>& all) {
  nlohmann::json run = about_run(command.command_line, config);
  for (const Regret& r : all) {
    run["sizes"].push_back({{"collective", name(r.collective)},
                            {"ranks", r.ranks},
                            {"nodes", r.nodes},
                            {"transport", r.transport},
                            {"bytes", r.bytes},
                            {"best", r.best},
                            {"best_us", r.best_us},
                            {"best_spread", r.best_spread},
                            {"chosen", r.chosen},
                            {"regret", r.chosen_ratio},
                            {"rule_of_thumb", r.by_rule},
                            {"rule_of_thumb_regret", r.by_rule_ratio}});
  }
  std::ofstream file(command.json);
  file << run.dump(1) << '\n';
  file.close();
  if (!file) return Error{Code::system, fmt::format("--json {}: {}", command.json, std::strerror(errno))};
  return {};
}

Status run(const RegretCommand& command, const Config& config) {
  const auto samples = GYRE_TRY(read_samples(command.samples));
  const topo::Constants constants = GYRE_TRY(topo::constants_of(command.constants));
  const auto all = GYRE_TRY(regrets(samples, constants));
  print_rows(all);
  print_summary(all);
  return command.json.empty() ? Status() : write(command, config, all);
}

}  // namespace

int regret(const RegretCommand& command, const Config& config) {
  const Status status = run(command, config);
  return status ? 0 : complain(status.error());
}

}  // namespace gyre::perf
