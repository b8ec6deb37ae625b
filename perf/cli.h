// The command line of gyre-perf, a file for each kind of subcommand. A subcommand's flags are read by CLI11 before any work is done;
// what they say is kept by `run`.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/config.h"

namespace gyre::perf {

/// What a subcommand gets besides its own flags.
struct Invocation {
  Config config;             ///< of the environment
  std::string command_line;  ///< as it was typed
};

struct Subcommand {
  CLI::App* app;                              ///< tells whether it was named
  std::function<int(const Invocation&)> run;  ///< returns the exit code
};

std::vector<Subcommand> add_sweeps(CLI::App&);
Subcommand add_plan(CLI::App&);
Subcommand add_measure(CLI::App&);
Subcommand add_fit(CLI::App&);
Subcommand add_regret(CLI::App&);
Subcommand add_tune(CLI::App&);
Subcommand add_tune_nccl(CLI::App&);
Subcommand add_model(CLI::App&);
Subcommand add_explain(CLI::App&);
Subcommand add_crossovers(CLI::App&);
Subcommand add_topo(CLI::App&);
Subcommand add_net(CLI::App&);
Subcommand add_tuner(CLI::App&);
Subcommand add_compare(CLI::App&);
Subcommand add_report(CLI::App&);

}  // namespace gyre::perf
