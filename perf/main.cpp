// gyre-perf: reads the command line; the work is in commands.h.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "perf/commands.h"

namespace {

using namespace gyre;

// A size with K, M or G; CLI11's message names the flag.
CLI::Option* add_bytes(CLI::App* app, const std::string& names, size_t& value, const std::string& text) {
  return app
      ->add_option_function<std::string>(
          names,
          [&value, names](const std::string& given) {
            const auto bytes = parse_bytes(given);
            if (!bytes) throw CLI::ValidationError(names, fmt::format("'{}' is not a size: a number, K, M and G allowed", given));
            value = *bytes;
          },
          text)
      ->type_name("SIZE");
}

// One name of a set, or "all".
template <class T, class Parse, class All>
void add_names(CLI::App* app, const std::string& names, std::vector<T>& values, Parse parse, All all, const std::string& text) {
  app->add_option_function<std::string>(
         names,
         [=, &values](const std::string& given) {
           const auto everything = all();
           values.assign(everything.begin(), everything.end());
           if (given == "all") return;
           const auto one = parse(given);
           if (!one) {
             std::vector<std::string_view> known;
             known.reserve(everything.size());
             for (const T value : everything) known.push_back(name(value));
             throw CLI::ValidationError(names, fmt::format("'{}' is none of {}, all", given, fmt::join(known, ", ")));
           }
           values = {*one};
         },
         text)
      ->type_name("NAME");
}

struct CommandLine {
  perf::AllReduceCommand all_reduce;
  int ranks = 2;
  std::string algorithm;
  std::string transport;
  std::string family;
  uint32_t channels = 1;
  bool unfused = false;
  bool options = false;
};

CLI::App* add_all_reduce(CLI::App& app, CommandLine& line) {
  CLI::App* sub = app.add_subcommand("all_reduce", "Check and time all-reduce over a range of sizes (nccl-tests' flags)");
  perf::SweepOptions& sweep = line.all_reduce.sweep;
  add_bytes(sub, "-b,--minbytes", sweep.min_bytes, "Smallest size (8)");
  add_bytes(sub, "-e,--maxbytes", sweep.max_bytes, "Largest size (64M)");
  sub->add_option("-f,--stepfactor", sweep.step_factor, "Factor between sizes (2)");
  add_bytes(sub, "-i,--stepbytes", sweep.step_bytes, "Fixed step between sizes, in place of the factor");
  sub->add_option("-n,--iters", sweep.iterations, "Timed calls of a size (20)")->check(CLI::Range(1, 1 << 30));
  sub->add_option("-w,--warmup_iters", sweep.warmup, "Calls before (5)")->check(CLI::Range(0, 1 << 30));
  add_names(sub, "-d,--datatype", sweep.types, data_type_named, all_data_types, "Element type, or all (float)");
  add_names(sub, "-o,--op", sweep.ops, reduce_op_named, all_reduce_ops, "Operation, or all (sum)");
  sub->add_option("-c,--check", sweep.check, "Calls whose result is checked; 0: none (1)")->check(CLI::Range(0, 1 << 30));
  sub->add_option("--ranks", line.ranks, "Local ranks to start (2)")->check(CLI::Range(1, 4096));
  sub->add_option("--algorithm", line.algorithm, "As GYRE_ALGORITHM");
  sub->add_option("--transport", line.transport, "As GYRE_TRANSPORT");
  sub->add_option("--json", line.all_reduce.json, "Also write the results to this file");
  return sub;
}

CLI::App* add_plan(CLI::App& app, CommandLine& line) {
  CLI::App* sub = app.add_subcommand("plan", "Print a schedule and verify it");
  sub->add_option("algorithm", line.family, "ring, naive or one_shot")->required();
  sub->add_option("--ranks", line.ranks, "Number of ranks (2)")->check(CLI::Range(1, 4096));
  sub->add_option("--channels", line.channels, "Number of channels (1)")->check(CLI::Range(1, 16));
  sub->add_flag("--unfused", line.unfused, "As the index rule has it, before steps are joined");
  return sub;
}

Result<Config> configure(const CommandLine& line) {
  Config config = GYRE_TRY(Config::from_environment());
  if (!line.algorithm.empty()) GYRE_TRY(config.set("GYRE_ALGORITHM", line.algorithm, "--algorithm"));
  if (!line.transport.empty()) GYRE_TRY(config.set("GYRE_TRANSPORT", line.transport, "--transport"));
  const std::string_view level = *config.log;
  log::set_level(level == "error"  ? log::Level::error
                 : level == "info" ? log::Level::info
                 : level == "warn" ? log::Level::warn
                                   : log::Level::debug);
  return config;
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line;
  CLI::App app{"gyre-perf: collectives, checked, timed and explained"};
  app.set_version_flag("--version", std::string("gyre ") + std::string(version));
  app.add_flag("--options", line.options, "Print every GYRE_* option, its value and where that came from");
  const CLI::App* all_reduce = add_all_reduce(app, line);
  const CLI::App* plan = add_plan(app, line);
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  const auto config = configure(line);
  if (!config) return perf::complain(config.error());
  if (line.options) {
    fmt::print("{}", config->table());
    return 0;
  }
  if (plan->parsed()) return perf::plan(line.family, line.ranks, line.channels, line.unfused, *config);
  if (!all_reduce->parsed()) {
    fmt::print("{}", app.help());
    return 2;
  }
  line.all_reduce.command_line = fmt::format("{}", fmt::join(argv, argv + argc, " "));
  if (all_reduce->count("--ranks") != 0) line.all_reduce.ranks = line.ranks;
  return perf::all_reduce(line.all_reduce, *config);
}
