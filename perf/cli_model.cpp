#include <memory>

#include "perf/cli.h"
#include "perf/cli_values.h"
#include "perf/commands.h"

namespace gyre::perf {
namespace {

void add_machine(CLI::App* sub, ModelCommand& command) {
  sub->add_option("--ranks", command.ranks, "Number of ranks (8)")->check(CLI::Range(1, 1 << 20));
  sub->add_option("--nodes", command.nodes, "Nodes that they are spread over, rank after rank (1)")->check(CLI::Range(1, 1 << 20));
  sub->add_option("--channels", command.channels, "Channels allowed (2)")->check(CLI::Range(1, 16));
  sub->add_option("-r,--root", command.root, "Root of the rooted collectives (0)");
  sub->add_option("--machine", command.machine, "Whose costs: a machine of the constants (gpu_cluster)");
  sub->add_option("--constants", command.constants, "File of constants in place of those compiled in");
}

// A size that may be absent.
void add_optional_bytes(CLI::App* sub, const std::string& name, std::optional<size_t>& value, const std::string& text) {
  sub->add_option_function<std::string>(
         name,
         [&value, name](const std::string& given) {
           value = parse_bytes(given);
           if (!value) throw CLI::ValidationError(name, fmt::format("'{}' is not a size, such as 64, 4K, 1.5M or 2G", given));
         },
         text)
      ->type_name("SIZE");
}

}  // namespace

Subcommand add_model(CLI::App& app) {
  const auto command = std::make_shared<ModelCommand>();  // shared with CLI11's options, which refer to it
  CLI::App* sub = app.add_subcommand("model", "Predict which algorithm wins at which size, on a machine that need not be here");
  add_machine(sub, *command);
  add_collective(sub, "--collective", command->collective);
  add_bytes(sub, "-b,--minbytes", command->min_bytes, "Smallest size (8)");
  add_bytes(sub, "-e,--maxbytes", command->max_bytes, "Largest size (1G)");
  sub->add_option("-f,--stepfactor", command->step_factor, "Factor between sizes (4)")->check(CLI::Range(2, 1 << 30));
  add_optional_bytes(sub, "--explain", command->explain_bytes, "Print every candidate for this size in place of the table");
  auto* simulate = sub->add_flag("--simulate", command->simulate, "Simulate the choice and all that may be faster, of each size");
  sub->add_option("-o,--output", command->file, "Write the constants with these times to this file; then the choice goes by them")
      ->needs(simulate);
  return {sub, [command](const Invocation& given) { return model(*command, given.config); }};
}

Subcommand add_explain(CLI::App& app) {
  const auto command = std::make_shared<ModelCommand>();
  command->explain_bytes = 1 << 20;
  CLI::App* sub = app.add_subcommand("explain", "Print every algorithm for a call, its predicted time or why it is refused");
  add_collective(sub, "collective", command->collective)->required();
  add_machine(sub, *command);
  add_optional_bytes(sub, "--bytes", command->explain_bytes, "Size of the call (1M)");
  return {sub, [command](const Invocation& given) { return model(*command, given.config); }};
}

Subcommand add_crossovers(CLI::App& app) {
  const auto command = std::make_shared<CrossoversCommand>();
  CLI::App* sub = app.add_subcommand(
      "crossovers", "Predict at which sizes NCCL's rings and trees are best with which protocol, beside NCCL's own defaults; not measured");
  sub->add_option("--machine", command->machine, "Nodes: dgx_h100, pcie_4090, cloud_t4, or others of --constants (dgx_h100)");
  sub->add_option("--nodes", command->nodes, "So many of them (1)")->check(CLI::Range(1, 1 << 14));
  sub->add_option("--ranks", command->ranks, "Ranks, as many on each node (all GPUs)")->check(CLI::Range(2, 1 << 17));
  sub->add_option("--constants", command->constants, "File in place of topo/nccl/constants.json, which is compiled in");
  sub->add_option("--rules", command->rules, "Write gyre's choices for this job to this file, as GYRE_TUNER_FILE takes it");
  sub->add_option("--profile", command->profile, "Put gyre's choices for 1, 2, 4, ... of these nodes up to --nodes into this profile");
  return {sub, [command](const Invocation& given) {
            command->command_line = given.command_line;
            return crossovers(*command);
          }};
}

}  // namespace gyre::perf
