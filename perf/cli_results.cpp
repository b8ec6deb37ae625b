#include <charconv>
#include <memory>

#include "perf/cli.h"
#include "perf/cli_values.h"
#include "perf/commands.h"

namespace gyre::perf {

Subcommand add_compare(CLI::App& app) {
  const auto command = std::make_shared<CompareCommand>();  // shared with CLI11's options, which refer to it
  CLI::App* sub = app.add_subcommand("compare", "Compare two results of the same calls, point by point");
  sub->alias("--compare");
  sub->add_option("before", command->before, "File of --json, or of measure: A")->required();
  sub->add_option("after", command->after, "The same: B")->required();
  const auto read = [command](const std::string& given) {
    double ratio = 0;
    const char* end = given.data() + given.size();
    const auto [at, error] = std::from_chars(given.data(), end, ratio);
    if (error != std::errc() || at != end || !(ratio > 0 && ratio <= 1e6)) {
      throw CLI::ValidationError("--fail-below", fmt::format("'{}' is not a ratio above 0, such as 0.95", given));
    }
    command->fail_below = ratio;
  };
  sub->add_option_function<std::string>("--fail-below", read,
                                        "End with exit code 4 where A's times over B's are below, in the geometric mean")
      ->type_name("RATIO");
  return {sub, [command](const Invocation& given) { return compare(*command, given.config); }};
}

Subcommand add_report(CLI::App& app) {
  const auto command = std::make_shared<ReportCommand>();
  CLI::App* sub = app.add_subcommand("report", "Draw results: time and bandwidth over size, a line for each algorithm");
  sub->add_option("files", command->files, "Files of --json, or of measure")->required();
  sub->add_option("-o,--output", command->output, "File to write: .html, or .svg for the pictures alone")->required();
  sub->add_option("--constants", command->constants, "File of constants, for what samples are chosen by, in place of those compiled in");
  return {sub, [command](const Invocation& given) { return report(*command, given.config); }};
}

}  // namespace gyre::perf
