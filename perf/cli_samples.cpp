#include <fmt/format.h>

#include <memory>

#include "perf/cli.h"
#include "perf/cli_values.h"
#include "perf/commands.h"

namespace gyre::perf {
namespace {

void add_files(CLI::App* sub, std::vector<std::string>& files) {
  sub->add_option("samples", files, "Files that measure has written")->required()->check(CLI::ExistingFile);
}

void add_rounds(CLI::App* sub, int& rounds) {
  const std::string what = fmt::format("Times that each is measured, all in turn; from the sixth on what may be the best ({})", rounds);
  sub->add_option("--rounds", rounds, what)->check(CLI::Range(1, 1000));
}

}  // namespace

Subcommand add_measure(CLI::App& app) {
  const auto command = std::make_shared<MeasureCommand>();  // shared with CLI11's options, which refer to it
  command->sizes.step_factor = 4;
  CLI::App* sub = app.add_subcommand("measure", "Time every algorithm of collectives at every size");
  add_number(sub, "--ranks", 2, 512, "Local ranks to start (2)", [ranks = &command->ranks](int n) { *ranks = n; });
  sub->add_option("--transport", command->transport, "shm, tcp, verbs, ucx or auto (shm; of a launcher's ranks auto)")
      ->check(CLI::IsMember({"shm", "tcp", "verbs", "ucx", "auto"}));
  add_collectives(sub, "--collectives", command->collectives);
  add_bytes(sub, "-b,--minbytes", command->sizes.min_bytes, "Smallest size (8)");
  add_bytes(sub, "-e,--maxbytes", command->sizes.max_bytes, "Largest size (64M)");
  sub->add_option("-f,--stepfactor", command->sizes.step_factor, "Factor between sizes (4)");
  add_rounds(sub, command->rounds);
  sub->add_option("-o,--output", command->file, "Add the samples to this file")->required();
  return {sub, [command](const Invocation& given) {
            command->command_line = given.command_line;
            return measure(*command, given.config);
          }};
}

Subcommand add_fit(CLI::App& app) {
  const auto command = std::make_shared<FitCommand>();
  CLI::App* sub = app.add_subcommand("fit", "Fit the constants of this host to samples");
  add_files(sub, command->samples);
  sub->add_option("-o,--output", command->file, "Write the constants to this file, for GYRE_CONSTANTS")->required();
  sub->add_flag("--for-this-machine", command->for_this_machine,
                "As tune does: the choice goes by the samples' times, where it has any, and other machines refuse the file");
  return {sub, [command](const Invocation& given) {
            command->command_line = given.command_line;
            return fit(*command, given.config);
          }};
}

Subcommand add_tune(CLI::App& app) {
  const auto command = std::make_shared<TuneCommand>();
  command->sizes.step_factor = 2;
  CLI::App* sub = app.add_subcommand("tune", "Measure this host and write what things cost here, for GYRE_CONSTANTS");
  sub->add_option("-o,--output", command->file, "Write the constants to this file; samples go beside it")->required();
  sub->add_option("--ranks", command->ranks, "Numbers of local ranks (2,4)")->delimiter(',')->check(CLI::Range(2, 64));
  sub->add_option("--transport", command->transports, "shm, tcp, verbs, ucx (shm,tcp)")
      ->delimiter(',')
      ->check(CLI::IsMember({"shm", "tcp", "verbs", "ucx"}));
  add_collectives(sub, "--collectives", command->collectives);
  add_bytes(sub, "-b,--minbytes", command->sizes.min_bytes, "Smallest size (8)");
  add_bytes(sub, "-e,--maxbytes", command->sizes.max_bytes, "Largest size (64M)");
  sub->add_option("-f,--stepfactor", command->sizes.step_factor, "Factor between sizes (2)");
  add_rounds(sub, command->rounds);
  return {sub, [command](const Invocation& given) {
            command->command_line = given.command_line;
            return tune(*command, given.config);
          }};
}

Subcommand add_tune_nccl(CLI::App& app) {
  const auto command = std::make_shared<TuneNcclCommand>();
  CLI::App* sub = app.add_subcommand(
      "tune_nccl", "Time NCCL's algorithms and protocols by your nccl-tests, and put the best into a profile, for NCCL's tuner");
  sub->add_option("--profile", command->profile, "Put the choices into this profile, for GYRE_TUNER_FILE")->required();
  sub->add_option("--ranks-per-node", command->ranks_per_node, "Ranks that the command starts on each node")
      ->required()
      ->check(CLI::Range(1, 1 << 10));
  sub->add_option("--nodes", command->nodes, "Nodes that it starts them on (1)")->check(CLI::Range(1, 1 << 14));
  sub->add_option("--rounds", command->rounds, "Times that each is measured, all in turn (5)")->check(CLI::Range(2, 1000));
  sub->add_option("--timeout", command->timeout_s, "Seconds after which a run is ended, and what it ran is left out (600)")
      ->check(CLI::Range(1, 1 << 20));
  add_path(sub, "--library", command->library, "libgyre-nccl.so: also time gyre beside NCCL, loaded before the program by LD_PRELOAD");
  sub->add_option_function<std::string>(
         "--collective", [command](const std::string& given) { command->collective = read_collective("--collective", given); },
         "What the command runs (as its words say: all_reduce_perf)")
      ->type_name("NAME");
  sub->add_option(
         "command", command->words,
         "Behind --: nccl-tests' all_reduce_perf or another, with its launcher. NCCL_ALGO and NCCL_PROTO are set for it; where a "
         "launcher leaves them behind (Open MPI between hosts), write {env} before the program, in whose place come env and what it "
         "sets: mpirun -np 16 {env} ./all_reduce_perf -b 8 -e 1G -f 2")
      ->required();
  return {sub, [command](const Invocation& given) {
            command->command_line = given.command_line;
            return tune_nccl(*command);
          }};
}

Subcommand add_regret(CLI::App& app) {
  const auto command = std::make_shared<RegretCommand>();
  CLI::App* sub = app.add_subcommand("regret", "Compare what is chosen with the best of the samples");
  add_files(sub, command->samples);
  sub->add_option("--constants", command->constants, "File of constants in place of those compiled in");
  sub->add_option("--json", command->json, "Also write the results to this file");
  return {sub, [command](const Invocation& given) {
            command->command_line = given.command_line;
            return regret(*command, given.config);
          }};
}

}  // namespace gyre::perf
