#include <memory>

#include "perf/cli.h"
#include "perf/cli_values.h"
#include "perf/plan.h"
#include "topo/algorithms.h"

namespace gyre::perf {

Subcommand add_plan(CLI::App& app) {
  const auto kept = std::make_shared<PlanCommand>();  // shared with CLI11's options, which refer to it
  PlanCommand& command = *kept;
  CLI::App* sub = app.add_subcommand("plan", "Show a schedule, verify and simulate it");
  std::vector<std::string_view> families;
  for (const topo::Family& family : topo::families()) families.push_back(family.name);
  const auto set_grid = [&command](const std::string& given) {
    auto grid = parse_grid(given);
    if (!grid) throw CLI::ValidationError("--grid", fmt::format("'{}' {}", given, grid.error().what));
    command.shape.grid = *std::move(grid);
  };
  sub->add_option("algorithm", command.family, fmt::format("{}", fmt::join(families, ", ")))->required();
  sub->add_option("--ranks", command.shape.ranks, "Number of ranks (2)")->check(CLI::Range(1, 1024));
  add_collective(sub, "--collective", command.shape.collective);
  sub->add_option("--channels", command.shape.channels, "Number of channels (1)")->check(CLI::Range(1, 16));
  sub->add_option("--root", command.shape.root, "Root of the rooted collectives (0)")->check(CLI::Range(0, 4095));
  sub->add_option_function<std::string>("--grid", set_grid, "Extents of the grid of ranks, the fastest first: 4x2")->type_name("AxB");
  sub->add_flag("--unfused", command.unfused, "As the index rule has it, before steps are joined");
  sub->add_option("--format", command.format, "table, dot (for Graphviz) or svg: a timeline (table)")
      ->check(CLI::IsMember({"table", "dot", "svg"}));
  add_bytes(sub, "--bytes", command.bytes, "Size that is simulated, as nccl-tests counts it (1M)");
  sub->add_option("--slices", command.slices, "Slices of a chunk that are simulated, all in flight together (1)")->check(CLI::Range(1, 64));
  sub->add_option("--nodes", command.nodes, "Nodes of the simulated machine (1)")->check(CLI::Range(1, 4096));
  sub->add_option("-o,--output", command.file, "Write to this file");
  return {sub, [kept](const Invocation& given) { return plan(*kept, given.config); }};
}

}  // namespace gyre::perf
