// gyre-perf: finds the subcommand; their flags are in cli_*.cpp, their work in commands.h.
#include <fmt/format.h>

#include <system_error>

#include "base/log.h"
#include "base/version.h"
#include "perf/cli.h"
#include "perf/commands.h"

namespace {

using namespace gyre;

void set_log_level(const Config& config) {
  const std::string_view level = *config.log;
  log::set_level(level == "error"  ? log::Level::error
                 : level == "info" ? log::Level::info
                 : level == "warn" ? log::Level::warn
                                   : log::Level::debug);
}

int run(const perf::Subcommand& subcommand, const perf::Invocation& given) {
  try {
    return perf::printed(subcommand.run(given));
  } catch (const std::system_error& error) {  // of fmt::print: "cannot write to file: No space left on device"
    return perf::complain({Code::system, error.what()});
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"gyre-perf: collectives, checked, timed and explained"};
  bool options = false;
  app.set_version_flag("--version", std::string("gyre ") + std::string(version));
  app.add_flag("--options", options, "Print every GYRE_* option, its value and where that came from");
  std::vector<perf::Subcommand> subcommands = perf::add_sweeps(app);
  for (const auto add :
       {perf::add_plan, perf::add_model, perf::add_explain, perf::add_crossovers, perf::add_measure, perf::add_fit, perf::add_regret,
        perf::add_tune, perf::add_tune_nccl, perf::add_compare, perf::add_report, perf::add_topo, perf::add_net, perf::add_tuner}) {
    subcommands.push_back(add(app));
  }
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  const auto config = Config::from_environment();
  if (!config) return perf::complain(config.error());
  set_log_level(*config);
  if (options) {
    fmt::print("{}", config->table());
    return 0;
  }
  for (const perf::Subcommand& subcommand : subcommands) {
    if (subcommand.app->parsed()) return run(subcommand, {*config, fmt::format("{}", fmt::join(argv, argv + argc, " "))});
  }
  fmt::print("{}", app.help());
  return 2;
}
