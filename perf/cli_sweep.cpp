#include <memory>

#include "perf/cli.h"
#include "perf/cli_nccl_tests.h"
#include "perf/cli_values.h"
#include "perf/commands.h"

namespace gyre::perf {
namespace {

struct Flags {
  SweepCommand command;
  std::vector<ReduceOp> ops{ReduceOp::sum};
  std::optional<Rank> root = 0;
  std::string algorithm;
  std::string transport;
};

std::string without(const Benchmark& benchmark, const char* what) { return fmt::format("{} has no {}", benchmark.title, what); }

// What a sweep has no use for is taken all the same, as by nccl-tests, so that one list of flags does for all.
void use_op_and_root(const Flags& flags, SweepCommand& command) {
  SweepOptions& sweep = command.sweep;
  const auto use = [&](bool used, const auto& given, auto& option, const char* letter, const char* what) {
    if (!used && given != option) command.notes.push_back(fmt::format("{} has no effect: {}", letter, without(*sweep.benchmark, what)));
    if (used) option = given;
  };
  use(sweep.benchmark->reduces(), flags.ops, sweep.ops, "-o", "operation");
  use(sweep.benchmark->rooted(), flags.root, sweep.root, "-r", "root");
}

void add_op(CLI::App* sub, const Benchmark& benchmark, std::vector<ReduceOp>& ops) {
  const std::string meaning = "Operation, or all; mulsum: each rank's input times its scalar (sum)";
  const std::string unused = "Taken, without effect: " + without(benchmark, "operation");
  add_names(sub, "-o,--op", ops, sweep_op_named, sweep_ops, benchmark.reduces() ? meaning : unused);
}

void add_root(CLI::App* sub, const Benchmark& benchmark, std::optional<Rank>& root) {
  const auto read = [&root](const std::string& given) {
    const auto number = parse_number(given);
    if (given != "all" && given != "-1" && (!number || *number > INT32_MAX)) {
      throw CLI::ValidationError("-r,--root", fmt::format("'{}' is neither a rank nor all", given));
    }
    root = number ? std::optional(static_cast<Rank>(*number)) : std::nullopt;
  };
  const std::string unused = "Taken, without effect: " + without(benchmark, "root");
  sub->add_option_function<std::string>("-r,--root", read, benchmark.rooted() ? "Root; all or -1: each in turn (0)" : unused)
      ->type_name("RANK");
}

void add_sweep_flags(CLI::App* sub, Flags& flags) {
  SweepOptions& sweep = flags.command.sweep;
  add_bytes(sub, "-b,--minbytes", sweep.min_bytes, "Smallest size, of the larger of input and output (8)");
  add_bytes(sub, "-e,--maxbytes", sweep.max_bytes, "Largest size (64M)");
  sub->add_option("-f,--stepfactor", sweep.step_factor, "Factor between sizes (2)");
  add_bytes(sub, "-i,--stepbytes", sweep.step_bytes, "Fixed step between sizes, in place of the factor");
  constexpr int many = 1 << 30;
  add_number(sub, "-n,--iters", 1, many, "Timed iterations of a size (20)", [&](int n) { sweep.timing.iterations = n; });
  add_number(sub, "-w,--warmup_iters", 0, many, "Iterations before (17)", [&](int n) { sweep.timing.warmup = n; });
  add_names(sub, "-d,--datatype", sweep.types, data_type_named, all_data_types, "Element type, or all (float)");
  add_op(sub, *sweep.benchmark, flags.ops);
  add_root(sub, *sweep.benchmark, flags.root);
  add_number(sub, "-c,--check", 0, many, "Calls whose result is checked; 0: none (1)", [&](int n) { sweep.check = n; });
  add_timing_flags(sub, sweep);
  add_nccl_tests_flags(sub, flags.command);
  add_number(sub, "--ranks", 1, 4096, "Local ranks to start (2)", [&](int n) { flags.command.ranks = n; });
  add_number(sub, "--communicators", 1, 64, "Communicators at a time, each with its own connections; calls on them in turn (1)",
             [&](int n) { sweep.communicators = n; });
  add_seconds(sub, "--time-limit", sweep.limit_seconds, "Seconds after which the sweep ends with what it has");
  if (sweep.benchmark->collective) {
    sub->add_option("--algorithm", flags.algorithm, "As GYRE_ALGORITHM");
    sub->add_flag("--explain", flags.command.explain, "Print every algorithm's predicted time, or why it can't run, for each size");
  }
  sub->add_option("--transport", flags.transport, "As GYRE_TRANSPORT");
  sub->add_option("-J,--output_file,--json", flags.command.json, "Also write the results to this file, as JSON lines");
}

Result<Config> configured(Config config, const Flags& flags) {
  if (!flags.algorithm.empty()) GYRE_TRY(config.set("GYRE_ALGORITHM", flags.algorithm, "--algorithm"));
  if (!flags.transport.empty()) GYRE_TRY(config.set("GYRE_TRANSPORT", flags.transport, "--transport"));
  return config;
}

Subcommand add_sweep(CLI::App& app, const Benchmark& benchmark) {
  const auto flags = std::make_shared<Flags>();  // shared with CLI11's options, which refer to it
  flags->command.sweep.benchmark = &benchmark;
  CLI::App* sub = app.add_subcommand(std::string(benchmark.name),
                                     fmt::format("Check and time {} over a range of sizes (nccl-tests' flags)", benchmark.title));
  add_sweep_flags(sub, *flags);
  const auto run = [flags](const Invocation& given) {
    const auto config = configured(given.config, *flags);
    if (!config) return complain(config.error());
    SweepCommand command = flags->command;
    use_op_and_root(*flags, command);
    if (const Status fit = check_together(command); !fit) return complain(fit.error());
    command.command_line = given.command_line;
    return run_sweep(command, *config);
  };
  return {sub, run};
}

}  // namespace

std::vector<Subcommand> add_sweeps(CLI::App& app) {
  std::vector<Subcommand> all;
  for (const Benchmark& benchmark : benchmarks()) all.push_back(add_sweep(app, benchmark));
  return all;
}

}  // namespace gyre::perf
